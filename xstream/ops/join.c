/* join: a symmetric hash join of two streams on an integer, such as a timestamp. The tuples of each
 * side are kept in a hash table, and every tuple is looked up in the table of the other side. */
#include "../engine/saving.h"
#include "operators.h"

/* The tuples of one side: rows chained by the bucket of their key. */
typedef struct {
    xs_slot *rows;
    int64_t *next, *bucket; /* row numbers, -1 at the end of a chain */
    int64_t capacity, used, free; /* in rows; `free` is the head of the free list */
    int32_t key;            /* the key field */
    int32_t fields;         /* of a row; known once there is one */
} xs_side;

typedef struct {
    xs_op op;
    xs_side side[2];
    bool unique; /* a key occurs once per side, so joined tuples are removed */
} xs_join;

static int64_t bucket_of(const xs_side *side, int64_t key)
{
    uint64_t hash = (uint64_t)key * 0x9E3779B97F4A7C15ull; /* Fibonacci hashing spreads neighbours */
    return (int64_t)((hash ^ hash >> 32) & (uint64_t)(side->capacity - 1));
}

static bool side_grow(xs_side *side, int32_t fields)
{
    int64_t capacity = side->capacity ? 2 * side->capacity : 64;
    size_t row = (size_t)fields * sizeof(xs_slot);
    xs_slot *rows = realloc(side->rows, (size_t)capacity * row);
    if (rows) side->rows = rows;
    int64_t *next = realloc(side->next, (size_t)capacity * sizeof *next);
    if (next) side->next = next;
    int64_t *bucket = realloc(side->bucket, (size_t)capacity * sizeof *bucket);
    if (bucket) side->bucket = bucket;
    if (!rows || !next || !bucket) return false;
    side->capacity = capacity;
    side->fields = fields;
    memset(bucket, -1, (size_t)capacity * sizeof *bucket);
    for (int64_t i = 0; i < side->used; i++) { /* all rows are in use, since the table was full */
        int64_t at = bucket_of(side, rows[i * fields + side->key].i);
        next[i] = bucket[at];
        bucket[at] = i;
    }
    return true;
}

static int32_t side_insert(xs_op *op, xs_side *side, const xs_slot *tuple, const xs_shape *shape)
{
    if (side->free < 0 && side->used == side->capacity && !side_grow(side, shape->fields))
        return op_out_of_memory(op);
    int64_t row = side->free;
    if (row >= 0) side->free = side->next[row];
    else row = side->used++;
    memcpy(side->rows + row * shape->fields, tuple, (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
    int64_t at = bucket_of(side, tuple[side->key].i);
    side->next[row] = side->bucket[at];
    side->bucket[at] = row;
    return XS_OK;
}

/* Removes the row that the link points to. */
static void side_remove(xs_side *side, int64_t *link, const xs_shape *shape)
{
    int64_t row = *link;
    *link = side->next[row];
    tuple_drop(side->rows + row * shape->fields, shape->segments);
    side->next[row] = side->free;
    side->free = row;
}

static int32_t emit_pair(xs_join *join, const xs_slot *left, const xs_slot *right)
{
    const xs_slot *from[2] = {left, right};
    xs_slot pair[MAX_FIELDS];
    int32_t at = 0;
    pair[at++] = left[join->side[0].key];
    for (int32_t port = 0; port < 2; port++)
        for (int32_t field = 0; field < join->op.in_shape[port].fields; field++)
            if (field != join->side[port].key) pair[at++] = from[port][field];
    return emit(&join->op, 0, pair);
}

static int32_t join_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_join *join = (xs_join *)op;
    xs_side *own = &join->side[port], *other = &join->side[!port];
    const xs_shape *shape = &op->in_shape[!port];
    int64_t key = tuple[own->key].i, none = -1;
    int64_t *link = other->capacity ? &other->bucket[bucket_of(other, key)] : &none;
    while (*link >= 0) {
        const xs_slot *met = other->rows + *link * shape->fields;
        if (met[other->key].i != key) {
            link = &other->next[*link];
            continue;
        }
        int32_t status = port ? emit_pair(join, met, tuple) : emit_pair(join, tuple, met);
        if (join->unique) side_remove(other, link, shape);
        if (status || join->unique) return status;
        link = &other->next[*link];
    }
    return side_insert(op, own, tuple, &op->in_shape[port]);
}

static void join_destroy(xs_op *op)
{
    xs_join *join = (xs_join *)op;
    for (int32_t port = 0; port < 2; port++) {
        xs_side *side = &join->side[port];
        for (int64_t i = 0; i < side->capacity && op->ins; i++)
            while (side->bucket[i] >= 0) side_remove(side, &side->bucket[i], &op->in_shape[port]);
        free(side->rows);
        free(side->next);
        free(side->bucket);
    }
}

static void join_save(xs_op *op, xs_image *image)
{
    const xs_join *join = (xs_join *)op;
    for (int32_t port = 0; port < 2; port++) {
        const xs_side *side = &join->side[port];
        save_int(image, side->capacity);
        save_int(image, side->used);
        save_int(image, side->free);
        save_words(image, side->bucket, side->capacity);
        save_words(image, side->next, side->used);
        int64_t live = 0;
        for (int64_t i = 0; i < side->capacity; i++)
            for (int64_t row = side->bucket[i]; row >= 0; row = side->next[row]) live++;
        save_int(image, live);
        for (int64_t i = 0; i < side->capacity; i++)
            for (int64_t row = side->bucket[i]; row >= 0; row = side->next[row]) {
                save_int(image, row);
                save_tuple(image, side->rows + row * op->in_shape[port].fields, &op->in_shape[port]);
            }
    }
}

/* Every row is in exactly one chain: one of a bucket, or the list of free rows. */
static bool chains_fit(const xs_side *side, const bool *live)
{
    bool *seen = calloc((size_t)side->used + 1, sizeof *seen);
    int64_t rows = 0;
    bool fits = seen != NULL;
    for (int64_t i = -1; i < side->capacity && fits; i++) {
        int64_t row = i < 0 ? side->free : side->bucket[i];
        for (; row != -1 && fits; row = side->next[row]) {
            fits = row >= 0 && row < side->used && !seen[row] && live[row] == (i >= 0);
            if (!fits) break;
            if (i >= 0) fits = bucket_of(side, side->rows[row * side->fields + side->key].i) == i;
            seen[row] = true;
            rows++;
        }
    }
    free(seen);
    return fits && rows == side->used;
}

static bool load_rows(xs_op *op, xs_stored *stored, xs_side *side, int32_t port, bool *live)
{
    int64_t count, row;
    xs_slot tuple[MAX_FIELDS];
    const xs_shape *shape = &op->in_shape[port];
    if (!load_count(stored, 8, &count)) return false;
    for (int64_t i = 0; i < count; i++) {
        if (!load_range(stored, &row, 0, side->used - 1) || live[row]) return false;
        if (!load_tuple(stored, port, tuple)) return false;
        memcpy(side->rows + row * shape->fields, tuple, (size_t)shape->fields * sizeof *tuple);
        live[row] = true;
    }
    return chains_fit(side, live);
}

static bool load_side(xs_op *op, xs_stored *stored, int32_t port)
{
    xs_side *side = &((xs_join *)op)->side[port];
    const xs_shape *shape = &op->in_shape[port];
    int64_t capacity, used, unused;
    if (!load_count(stored, 8, &capacity) || !load_range(stored, &used, 0, capacity) ||
        !load_range(stored, &unused, -1, used - 1))
        return false;
    if (!capacity) {
        return load_range(stored, &used, 0, 0);
    }
    if (capacity & (capacity - 1)) return load_refused(stored, "a table has an odd size");
    const int64_t *bucket = load_bytes(stored, 8 * capacity), *next = bucket ? load_bytes(stored, 8 * used) : NULL;
    if (!next) return false;
    bool *live = calloc((size_t)used + 1, sizeof *live);
    side->rows = calloc((size_t)(capacity * shape->fields), sizeof *side->rows);
    side->next = malloc((size_t)capacity * sizeof *side->next);
    side->bucket = malloc((size_t)capacity * sizeof *side->bucket);
    bool fits = live && side->rows && side->next && side->bucket;
    if (fits) {
        memcpy(side->bucket, bucket, (size_t)capacity * sizeof *bucket);
        memcpy(side->next, next, (size_t)used * sizeof *next);
        side->capacity = capacity;
        side->used = used;
        side->free = unused;
        side->fields = shape->fields;
        fits = load_rows(op, stored, side, port, live);
    }
    if (!fits) { /* the chains cannot be followed */
        for (int64_t i = 0; live && i < used; i++)
            if (live[i]) tuple_drop(side->rows + i * shape->fields, shape->segments);
        side->capacity = 0;
    }
    free(live);
    return fits;
}

static bool join_load(xs_op *op, xs_stored *stored)
{
    return load_side(op, stored, 0) && load_side(op, stored, 1);
}

static const xs_op_table join_table = {
    .process = join_process, .destroy = join_destroy, .save = join_save, .load = join_load};

xs_op *xs_op_join(xs_plan *plan, int32_t left_key, int32_t right_key, int32_t unique)
{
    xs_join *join = op_new(plan, sizeof *join, &join_table);
    if (!join) return NULL;
    join->side[0] = (xs_side){.key = left_key, .free = -1};
    join->side[1] = (xs_side){.key = right_key, .free = -1};
    join->unique = unique;
    return &join->op;
}
