/* A hash table of rows of 64-bit words: integer keys first, then values. Rows are contiguous, in the
 * order in which their keys were added, so that a table is two flat arrays. */
#ifndef XS_TABLE_H
#define XS_TABLE_H
#include "../engine/saving.h"

typedef struct {
    int32_t keys, words;      /* per row; words includes the keys */
    int64_t *row;             /* count * words */
    int64_t count, capacity;  /* in rows */
    uint64_t *slot;           /* open addressing: hash << 32 | row number + 1; 0 is free */
    int64_t slots;            /* a power of two, at least twice the rows; or 0 */
    uint32_t *direct;         /* index for a single small key: row number + 1, without a hash */
    int64_t directs;          /* number of keys in the index, from 0 */
} xs_table;

static inline void table_begin(xs_table *table, int32_t keys, int32_t values)
{
    *table = (xs_table){.keys = keys, .words = keys + values};
}
static inline int64_t *table_at(const xs_table *table, int64_t number)
{
    return table->row + number * table->words;
}
static inline uint32_t table_hash(const xs_table *table, const int64_t *key)
{
    uint64_t hash = 0x9E3779B97F4A7C15ull;
    for (int32_t i = 0; i < table->keys; i++) {
        hash ^= (uint64_t)key[i];
        hash *= 0xFF51AFD7ED558CCDull;
        hash ^= hash >> 32;
    }
    return (uint32_t)(hash ^ hash >> 29);
}

static inline bool table_equal(const xs_table *table, const int64_t *a, const int64_t *b)
{
    for (int32_t i = 0; i < table->keys; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* The slot of the row with these keys, or the free slot for it. */
static inline int64_t table_slot(const xs_table *table, const int64_t *key, uint32_t hash)
{
    int64_t mask = table->slots - 1, at = hash & mask;
    for (;; at = (at + 1) & mask) {
        uint64_t slot = table->slot[at];
        if (!slot) return at;
        if (slot >> 32 == hash && table_equal(table, table_at(table, (uint32_t)slot - 1), key)) return at;
    }
}

/* The number of the row with a single small key, or -1 if only a hash lookup can tell. */
static inline int64_t table_direct(const xs_table *table, const int64_t *key)
{
    if (table->keys != 1 || (uint64_t)*key >= (uint64_t)table->directs) return -1;
    return (int64_t)table->direct[*key] - 1;
}

/* The number of the row with these keys, or -1. */
int64_t table_find(const xs_table *table, const int64_t *key);
/* The same; a missing row is added at the end (its number is the old count) with uninitialised values.
 * -1: out of memory. */
int64_t table_add_new(xs_table *table, const int64_t *key);
static inline int64_t table_add(xs_table *table, const int64_t *key)
{
    int64_t direct = table_direct(table, key);
    if (direct >= 0) return direct;
    if (likely(table->slots)) {
        uint64_t slot = table->slot[table_slot(table, key, table_hash(table, key))];
        if (likely(slot)) return (int64_t)(uint32_t)slot - 1;
    }
    return table_add_new(table, key);
}
/* Removes a row and moves the last row into its place. */
void table_remove(xs_table *table, int64_t number);
void table_clear(xs_table *table); /* keeps its memory */
void table_free(xs_table *table);
void table_save(xs_image *image, const xs_table *table);
bool table_load(xs_stored *stored, xs_table *table); /* into an empty table */
#endif
