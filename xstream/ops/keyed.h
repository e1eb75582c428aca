/* Tuples by an integer key, such as a timestamp: a table with open addressing that holds the tuples
 * themselves. Evenly spaced keys, in whatever order, get neighbouring slots without collisions. */
#ifndef XS_KEYED_H
#define XS_KEYED_H
#include "../engine/saving.h"

/* A cell is a link and a tuple. Links are 0 in an empty cell, LAST, or the cell of the next older tuple
 * with the same key, plus LAST + 1. */
enum { KEYED_LAST = 1 };

typedef struct {
    xs_slot *cell;        /* of each key the newest tuple, in order of the keys' homes (Robin Hood) */
    int64_t slots, keys;  /* slots: a power of two, or 0 */
    int64_t displaced;    /* keys that are not at home */
    int32_t fields, key;  /* of a tuple; the key field */
    int32_t shift;        /* the home of a key: (key * factor) >> shift, modulo the slots */
    uint64_t factor;
    int64_t credit;       /* collisions that are accepted until the homes are chosen again */
    xs_slot *older;       /* cells of the other tuples */
    int64_t olders, used, free; /* free: a link */
} xs_keyed;

static inline int64_t keyed_home(const xs_keyed *keyed, int64_t key)
{
    return (int64_t)(((uint64_t)key * keyed->factor) >> keyed->shift) & (keyed->slots - 1);
}
static inline int64_t keyed_after(const xs_keyed *keyed, int64_t at) { return (at + 1) & (keyed->slots - 1); }
static inline xs_slot *keyed_cell(const xs_keyed *keyed, int64_t at)
{
    return keyed->cell + at * (keyed->fields + 1);
}
static inline int64_t keyed_key(const xs_keyed *keyed, const xs_slot *cell)
{
    return cell[1 + keyed->key].i;
}
/* How far from its home the tuple in a cell is. */
static inline int64_t keyed_distance(const xs_keyed *keyed, int64_t at)
{
    return (at - keyed_home(keyed, keyed_key(keyed, keyed_cell(keyed, at)))) & (keyed->slots - 1);
}

/* The slot of the newest tuple with a key, or -1. */
static inline int64_t keyed_find(const xs_keyed *keyed, int64_t key)
{
    if (!keyed->keys) return -1;
    int64_t at = keyed_home(keyed, key);
    for (int64_t distance = 0;; distance++) {
        const xs_slot *cell = keyed_cell(keyed, at);
        if (!cell->i) return -1;
        if (keyed_key(keyed, cell) == key) return at;
        if (!keyed->displaced || keyed_distance(keyed, at) < distance) return -1;
        at = keyed_after(keyed, at);
    }
}
/* The cell of the next older tuple with the same key, or NULL. */
static inline xs_slot *keyed_older(const xs_keyed *keyed, const xs_slot *cell)
{
    if (cell->i <= KEYED_LAST) return NULL;
    return keyed->older + (cell->i - KEYED_LAST - 1) * (keyed->fields + 1);
}

static inline void keyed_copy(xs_slot *to, const xs_slot *from, int32_t fields)
{
    switch (fields) { /* a call or a loop would take longer than a few words */
    default: memcpy(to, from, (size_t)fields * sizeof *to); return;
    case 4: to[3] = from[3]; /* fall through */
    case 3: to[2] = from[2]; /* fall through */
    case 2: to[1] = from[1]; /* fall through */
    case 1: to[0] = from[0]; /* fall through */
    case 0: return;
    }
}

/* Adds a tuple without counting its segments. False: no memory. */
bool keyed_add_slowly(xs_keyed *keyed, const xs_slot *tuple);
static inline bool keyed_add(xs_keyed *keyed, const xs_slot *tuple)
{
    if (unlikely(4 * keyed->keys >= 3 * keyed->slots)) return keyed_add_slowly(keyed, tuple);
    xs_slot *cell = keyed_cell(keyed, keyed_home(keyed, tuple[keyed->key].i));
    if (unlikely(cell->i)) return keyed_add_slowly(keyed, tuple);
    keyed->keys++;
    keyed->credit++;
    cell->i = KEYED_LAST;
    keyed_copy(cell + 1, tuple, keyed->fields);
    return true;
}

/* Removes the newest tuple of a key, whose segments are the caller's now. */
void keyed_remove_slowly(xs_keyed *keyed, int64_t at);
static inline void keyed_remove(xs_keyed *keyed, int64_t at)
{
    xs_slot *cell = keyed_cell(keyed, at);
    if (unlikely(cell->i > KEYED_LAST || keyed->displaced)) {
        keyed_remove_slowly(keyed, at);
        return;
    }
    cell->i = 0;
    keyed->keys--;
}

void keyed_free(xs_keyed *keyed, const xs_shape *shape);
void keyed_save(xs_image *image, const xs_keyed *keyed, const xs_shape *shape);
/* Into an empty table, for the tuples of a port. */
bool keyed_load(xs_stored *stored, xs_keyed *keyed, const xs_shape *shape, int32_t port);
#endif
