/* join: a symmetric hash join of two streams on an integer, such as a timestamp. The tuples of each
 * side are kept in a hash table, and every tuple is looked up in the table of the other side. */
#include "../engine/engine.h"
#include "operators.h"

/* The tuples of one side: rows chained by the bucket of their key. */
typedef struct {
    xs_slot *rows;
    int64_t *next, *bucket; /* row numbers, -1 at the end of a chain */
    int64_t capacity, used, free; /* in rows; `free` is the head of the free list */
    int32_t key;            /* the key field */
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

static const xs_op_table join_table = {.process = join_process, .destroy = join_destroy};

xs_op *xs_op_join(xs_plan *plan, int32_t left_key, int32_t right_key, int32_t unique)
{
    xs_join *join = op_new(plan, sizeof *join, &join_table);
    if (!join) return NULL;
    join->side[0] = (xs_side){.key = left_key, .free = -1};
    join->side[1] = (xs_side){.key = right_key, .free = -1};
    join->unique = unique;
    return &join->op;
}
