/* Tuples by an integer key: see keyed.h.
 *
 * The homes of keys are chosen when the table grows. If all keys are start + i * step with few gaps, they
 * get consecutive homes: step is 2^shift times an odd number, and the factor is the inverse of that number
 * modulo 2^64. Otherwise the homes are scattered by Fibonacci hashing. Tables with many collisions, such
 * as those of two ranges of keys that share homes, are changed to the latter. */
#include "keyed.h"

enum {
    SLOTS_MIN = 64,
    ADD_CREDIT = 4, /* moved tuples per new one that are as cheap as hashing */
};
static const uint64_t FIBONACCI = 0x9E3779B97F4A7C15ull;

static size_t cell_bytes(const xs_keyed *keyed) { return (size_t)(keyed->fields + 1) * sizeof(xs_slot); }

/* -- homes --------------------------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Of an odd number, modulo 2^64, by Newton's method: each step doubles the number of correct bits. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t found = odd; /* three bits */
    for (int32_t i = 0; i < 5; i++) found *= 2 - odd * found;
    return found;
}

static void scatter(xs_keyed *keyed, int64_t slots)
{
    keyed->factor = FIBONACCI;
    keyed->shift = 64 - __builtin_ctzll((uint64_t)slots);
}

/* Chooses the homes for the keys that the table has and this number of slots. */
static void choose_homes(xs_keyed *keyed, int64_t slots)
{
    int64_t low = INT64_MAX, high = INT64_MIN, first = 0;
    uint64_t step = 0;
    bool any = false;
    for (int64_t at = 0; at < keyed->slots; at++) {
        const xs_slot *cell = keyed_cell(keyed, at);
        if (!cell->i) continue;
        int64_t key = keyed_key(keyed, cell);
        if (!any) first = key;
        any = true;
        if (key < low) low = key;
        if (key > high) high = key;
        uint64_t apart = key > first ? (uint64_t)key - (uint64_t)first : (uint64_t)first - (uint64_t)key;
        step = common_divisor(apart, step);
    }
    if (!step) step = 1; /* up to one key */
    if (any && ((uint64_t)high - (uint64_t)low) / step >= (uint64_t)slots) {
        scatter(keyed, slots);
        return;
    }
    keyed->shift = __builtin_ctzll(step);
    keyed->factor = inverse(step >> keyed->shift);
}

/* -- adding and removing ------------------------------------------------------------------- */

static void put(xs_keyed *keyed, int64_t at, int64_t link, const xs_slot *tuple)
{
    xs_slot *cell = keyed_cell(keyed, at);
    cell->i = link;
    memcpy(cell + 1, tuple, (size_t)keyed->fields * sizeof *tuple);
}

/* Moves the tuples from here to the next empty slot by one; returns how many. */
static int64_t make_room(xs_keyed *keyed, int64_t at)
{
    int64_t end = at, moved = 0;
    while (keyed_cell(keyed, end)->i) {
        keyed->displaced += !keyed_distance(keyed, end);
        end = keyed_after(keyed, end);
        moved++;
    }
    for (int64_t i = 0; i < moved; i++) {
        int64_t before = (end - 1) & (keyed->slots - 1);
        memcpy(keyed_cell(keyed, end), keyed_cell(keyed, before), cell_bytes(keyed));
        end = before;
    }
    return moved;
}

/* The slot for a key: that of its newest tuple, or one from which the others must make room. */
static int64_t slot_for(const xs_keyed *keyed, int64_t key, int64_t *passed)
{
    int64_t at = keyed_home(keyed, key);
    for (*passed = 0;; ++*passed) {
        const xs_slot *cell = keyed_cell(keyed, at);
        if (!cell->i || keyed_key(keyed, cell) == key || keyed_distance(keyed, at) < *passed) return at;
        at = keyed_after(keyed, at);
    }
}

static void put_new(xs_keyed *keyed, int64_t at, int64_t passed, int64_t link, const xs_slot *tuple)
{
    keyed->credit += ADD_CREDIT - passed - make_room(keyed, at);
    keyed->keys++;
    keyed->displaced += passed != 0;
    put(keyed, at, link, tuple);
}

/* With other homes, or another number of slots. False: no memory; the table is as before. */
static bool rehash(xs_keyed *keyed, int64_t slots, bool scattered)
{
    xs_keyed made = *keyed;
    choose_homes(&made, slots); /* for the tuples in the old cells */
    if (scattered) scatter(&made, slots);
    made.cell = calloc((size_t)slots, cell_bytes(keyed));
    if (!made.cell) return false;
    made.slots = slots;
    made.keys = made.displaced = 0;
    made.credit = INT64_MAX / 2; /* while it is filled */
    for (int64_t at = 0; at < keyed->slots; at++) {
        const xs_slot *cell = keyed_cell(keyed, at);
        if (!cell->i) continue;
        int64_t passed, slot = slot_for(&made, keyed_key(keyed, cell), &passed);
        put_new(&made, slot, passed, cell->i, cell + 1);
    }
    if (made.factor != FIBONACCI) made.credit = slots;
    free(keyed->cell);
    *keyed = made;
    return true;
}

static xs_slot *older_of(const xs_keyed *keyed, int64_t link)
{
    return keyed->older + (link - KEYED_LAST - 1) * (keyed->fields + 1);
}

/* A free cell for an older tuple, as a link, or 0 without memory. */
static int64_t older_cell(xs_keyed *keyed)
{
    int64_t link = keyed->free;
    if (link) {
        keyed->free = older_of(keyed, link)->i;
        return link;
    }
    if (keyed->used == keyed->olders) {
        int64_t olders = keyed->olders ? 2 * keyed->olders : SLOTS_MIN;
        xs_slot *older = realloc(keyed->older, (size_t)olders * cell_bytes(keyed));
        if (!older) return 0;
        keyed->older = older;
        keyed->olders = olders;
    }
    return keyed->used++ + KEYED_LAST + 1;
}

bool keyed_add_slowly(xs_keyed *keyed, const xs_slot *tuple)
{
    bool full = 4 * keyed->keys >= 3 * keyed->slots;
    if (full && !rehash(keyed, keyed->slots ? 2 * keyed->slots : SLOTS_MIN, false)) return false;
    if (unlikely(keyed->credit < 0)) { /* the same homes again would not help */
        uint64_t factor = keyed->factor;
        if (!rehash(keyed, keyed->slots, false)) return false;
        if (keyed->factor == factor && !rehash(keyed, keyed->slots, true)) return false;
    }
    int64_t key = tuple[keyed->key].i, passed, at = slot_for(keyed, key, &passed);
    xs_slot *cell = keyed_cell(keyed, at);
    if (!cell->i || keyed_key(keyed, cell) != key) {
        put_new(keyed, at, passed, KEYED_LAST, tuple);
        return true;
    }
    int64_t link = older_cell(keyed);
    if (!link) return false;
    memcpy(older_of(keyed, link), cell, cell_bytes(keyed));
    put(keyed, at, link, tuple);
    return true;
}

void keyed_remove_slowly(xs_keyed *keyed, int64_t at)
{
    xs_slot *cell = keyed_cell(keyed, at), *older = keyed_older(keyed, cell);
    if (older) {
        int64_t link = cell->i;
        memcpy(cell, older, cell_bytes(keyed));
        older->i = keyed->free;
        keyed->free = link;
        return;
    }
    keyed->displaced -= keyed_distance(keyed, at) != 0;
    int64_t next = keyed_after(keyed, at), distance;
    while (keyed_cell(keyed, next)->i && (distance = keyed_distance(keyed, next))) {
        keyed->displaced -= distance == 1;
        memcpy(keyed_cell(keyed, at), keyed_cell(keyed, next), cell_bytes(keyed));
        keyed->credit--;
        at = next;
        next = keyed_after(keyed, next);
    }
    keyed_cell(keyed, at)->i = 0;
    keyed->keys--;
}

void keyed_free(xs_keyed *keyed, const xs_shape *shape)
{
    for (int64_t at = 0; at < keyed->slots; at++) {
        const xs_slot *cell = keyed_cell(keyed, at);
        for (; cell && cell->i; cell = keyed_older(keyed, cell)) tuple_drop(cell + 1, shape->segments);
    }
    free(keyed->cell);
    free(keyed->older);
    *keyed = (xs_keyed){.fields = keyed->fields, .key = keyed->key};
}

/* -- checkpoints: the tuples, of each key the newest first ----------------------------------- */

void keyed_save(xs_image *image, const xs_keyed *keyed, const xs_shape *shape)
{
    int64_t count = 0;
    for (int64_t at = 0; at < keyed->slots; at++) {
        const xs_slot *cell = keyed_cell(keyed, at);
        for (; cell && cell->i; cell = keyed_older(keyed, cell)) count++;
    }
    save_int(image, count);
    for (int64_t at = 0; at < keyed->slots; at++) {
        const xs_slot *cell = keyed_cell(keyed, at);
        for (; cell && cell->i; cell = keyed_older(keyed, cell)) save_tuple(image, cell + 1, shape);
    }
}

/* Adds a tuple that is older than all others with its key; `oldest` is the link to the last of these, or
 * LAST if there is one only. */
static bool add_older(xs_keyed *keyed, int64_t at, const xs_slot *tuple, int64_t *oldest)
{
    int64_t link = older_cell(keyed);
    if (!link) return false;
    xs_slot *cell = older_of(keyed, link);
    cell->i = KEYED_LAST;
    memcpy(cell + 1, tuple, (size_t)keyed->fields * sizeof *tuple);
    (*oldest == KEYED_LAST ? keyed_cell(keyed, at) : older_of(keyed, *oldest))->i = link;
    *oldest = link;
    return true;
}

bool keyed_load(xs_stored *stored, xs_keyed *keyed, const xs_shape *shape, int32_t port)
{
    int64_t count, last = 0, oldest = KEYED_LAST;
    xs_slot tuple[MAX_FIELDS];
    if (!load_count(stored, 8, &count)) return false;
    keyed->fields = shape->fields;
    for (int64_t i = 0; i < count; i++) {
        if (!load_tuple(stored, port, tuple)) return false;
        int64_t key = tuple[keyed->key].i, at = keyed_find(keyed, key);
        bool together = at < 0 || key == last, added = false;
        if (at < 0) oldest = KEYED_LAST;
        if (together) added = at < 0 ? keyed_add(keyed, tuple) : add_older(keyed, at, tuple, &oldest);
        last = key;
        if (added) continue;
        tuple_drop(tuple, shape->segments);
        return load_refused(stored, together ? "no memory is left" : "the tuples of a key lie apart");
    }
    return true;
}
