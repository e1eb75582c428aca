/* Hash tables of rows: see table.h. */
#include "table.h"

enum {
    TABLE_MIN = 16,        /* rows */
    DIRECT_PER_ROW = 8,    /* entries of the direct index per row of capacity, */
    DIRECT_MAX = 1 << 16,  /* limited to what fits into a cache */
};
static const int64_t TABLE_MAX = (int64_t)1 << 31; /* a slot has 32 bits for the row number */

int64_t table_find(const xs_table *table, const int64_t *key)
{
    int64_t direct = table_direct(table, key);
    if (direct >= 0 || !table->slots) return direct;
    return (int64_t)(uint32_t)table->slot[table_slot(table, key, table_hash(table, key))] - 1;
}

static void note_direct(xs_table *table, int64_t number)
{
    uint64_t key = table->keys == 1 ? (uint64_t)*table_at(table, number) : UINT64_MAX;
    if (key < (uint64_t)table->directs) table->direct[key] = (uint32_t)(number + 1);
}

static void forget_direct(xs_table *table, int64_t number)
{
    uint64_t key = table->keys == 1 ? (uint64_t)*table_at(table, number) : UINT64_MAX;
    if (key < (uint64_t)table->directs) table->direct[key] = 0;
}

/* If the allocation fails, keys are found by their hashes. */
static void grow_direct(xs_table *table)
{
    int64_t directs = DIRECT_PER_ROW * table->capacity;
    if (directs > DIRECT_MAX) directs = DIRECT_MAX;
    if (table->keys != 1 || directs <= table->directs) return;
    uint32_t *direct = calloc((size_t)directs, sizeof *direct);
    if (!direct) return;
    free(table->direct);
    table->direct = direct;
    table->directs = directs;
    for (int64_t i = 0; i < table->count; i++) note_direct(table, i);
}

/* The slots contain the hashes, so rows need not be read. */
static bool grow(xs_table *table)
{
    int64_t capacity = table->capacity ? 2 * table->capacity : TABLE_MIN, slots = 2 * capacity;
    if (capacity > TABLE_MAX) return false;
    int64_t *row = realloc(table->row, (size_t)(capacity * table->words + 1) * sizeof *row);
    if (!row) return false;
    table->row = row;
    uint64_t *slot = calloc((size_t)slots, sizeof *slot);
    if (!slot) return false;
    for (int64_t i = 0; i < table->slots; i++) {
        if (!table->slot[i]) continue;
        int64_t at = (int64_t)(table->slot[i] >> 32) & (slots - 1);
        while (slot[at]) at = (at + 1) & (slots - 1);
        slot[at] = table->slot[i];
    }
    free(table->slot);
    table->slot = slot;
    table->slots = slots;
    table->capacity = capacity;
    grow_direct(table);
    return true;
}

int64_t table_add_new(xs_table *table, const int64_t *key)
{
    if (unlikely(!table->slots) && !grow(table)) return -1;
    uint32_t hash = table_hash(table, key);
    int64_t at = table_slot(table, key, hash);
    if (unlikely(table->count == table->capacity)) {
        if (!grow(table)) return -1;
        at = table_slot(table, key, hash);
    }
    int64_t number = table->count++;
    table->slot[at] = (uint64_t)hash << 32 | (uint64_t)(number + 1);
    memcpy(table_at(table, number), key, (size_t)table->keys * sizeof *key);
    note_direct(table, number);
    return number;
}

/* Frees a slot and moves later entries of its probe sequence up. */
static void slot_free(xs_table *table, int64_t hole)
{
    int64_t mask = table->slots - 1;
    for (int64_t at = (hole + 1) & mask; table->slot[at]; at = (at + 1) & mask) {
        int64_t home = (int64_t)(table->slot[at] >> 32) & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its home is after the hole */
        table->slot[hole] = table->slot[at];
        hole = at;
    }
    table->slot[hole] = 0;
}

void table_remove(xs_table *table, int64_t number)
{
    int64_t *row = table_at(table, number), last = --table->count;
    forget_direct(table, number);
    slot_free(table, table_slot(table, row, table_hash(table, row)));
    if (number == last) return;
    int64_t *moved = table_at(table, last);
    int64_t at = table_slot(table, moved, table_hash(table, moved));
    table->slot[at] = (table->slot[at] & ~(uint64_t)UINT32_MAX) | (uint64_t)(number + 1);
    memcpy(row, moved, (size_t)table->words * sizeof *row);
    note_direct(table, number);
}

void table_clear(xs_table *table)
{
    for (int64_t i = 0; i < table->count && table->directs; i++) forget_direct(table, i);
    if (table->count) memset(table->slot, 0, (size_t)table->slots * sizeof *table->slot);
    table->count = 0;
}

void table_free(xs_table *table)
{
    free(table->row);
    free(table->slot);
    free(table->direct);
    *table = (xs_table){.keys = table->keys, .words = table->words};
}

void table_save(xs_image *image, const xs_table *table)
{
    save_int(image, table->count);
    save_bytes(image, table->row, table->count * table->words * (int64_t)sizeof *table->row);
}

bool table_load(xs_stored *stored, xs_table *table)
{
    int64_t count;
    if (!load_count(stored, table->words * (int64_t)sizeof *table->row, &count)) return false;
    const int64_t *row = load_bytes(stored, count * table->words * (int64_t)sizeof *row);
    if (!row) return false;
    for (int64_t i = 0; i < count; i++, row += table->words) {
        int64_t number = table_add(table, row);
        if (number < 0) return load_refused(stored, "no memory is left");
        if (number != i) return load_refused(stored, "a key occurs twice");
        memcpy(table_at(table, i), row, (size_t)table->words * sizeof *row);
    }
    return true;
}
