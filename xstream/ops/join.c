/* join: a symmetric hash join of two streams on an integer, such as a timestamp. The tuples of each
 * side are kept in a table by their key, and every tuple is looked up in the table of the other side.
 * Of several tuples with a key the newest is met first. */
#include "keyed.h"
#include "operators.h"

typedef struct {
    xs_op op;
    xs_keyed side[2];
    bool unique;     /* a key occurs once per side, so joined tuples are removed */
    int32_t paired;  /* joined tuples of a batch that wait to be emitted */
    xs_slot *pair;   /* space for MANY of them; made for the first batch */
} xs_join;

static void make_pair(const xs_join *join, const xs_slot *left, const xs_slot *right, xs_slot *pair)
{
    const xs_slot *from[2] = {left, right};
    *pair++ = left[join->side[0].key];
    for (int32_t port = 0; port < 2; port++) {
        int32_t key = join->side[port].key, fields = join->op.in_shape[port].fields;
        for (int32_t field = 0; field < fields; field++)
            if (field != key) *pair++ = from[port][field];
    }
}

static int32_t emit_pair(xs_join *join, int32_t port, const xs_slot *tuple, const xs_slot *met)
{
    xs_slot pair[MAX_FIELDS];
    make_pair(join, port ? met : tuple, port ? tuple : met, pair);
    return emit(&join->op, 0, pair);
}

static int32_t keep(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_keyed *own = &((xs_join *)op)->side[port];
    own->fields = op->in_shape[port].fields;
    if (!keyed_add(own, tuple)) return op_out_of_memory(op);
    for (uint64_t left = op->in_shape[port].segments; left; left &= left - 1)
        xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
    return XS_OK;
}

static int32_t join_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_join *join = (xs_join *)op;
    xs_keyed *other = &join->side[!port];
    int64_t at = keyed_find(other, tuple[join->side[port].key].i);
    if (at >= 0 && join->unique) {
        xs_slot met[MAX_FIELDS];
        memcpy(met, keyed_cell(other, at) + 1, (size_t)other->fields * sizeof *met);
        keyed_remove(other, at);
        int32_t status = emit_pair(join, port, tuple, met);
        tuple_drop(met, op->in_shape[!port].segments);
        return status;
    }
    const xs_slot *cell = at >= 0 ? keyed_cell(other, at) : NULL;
    for (; cell; cell = keyed_older(other, cell)) {
        int32_t status = emit_pair(join, port, tuple, cell + 1);
        if (status) return status;
    }
    return keep(op, port, tuple);
}

/* -- batches ------------------------------------------------------------------------------- */

static int32_t emit_paired(xs_join *join)
{
    int32_t count = join->paired;
    join->paired = 0;
    return count ? emit_many(&join->op, join->pair, count) : XS_OK;
}

static int32_t add_pair(xs_join *join, int32_t port, const xs_slot *tuple, const xs_slot *met)
{
    int32_t status = join->paired == MANY ? emit_paired(join) : XS_OK;
    xs_slot *pair = join->pair + join->paired++ * join->op.out[0].shape.fields;
    make_pair(join, port ? met : tuple, port ? tuple : met, pair);
    return status;
}

static int32_t match(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_join *join = (xs_join *)op;
    xs_keyed *other = &join->side[!port];
    int64_t at = keyed_find(other, tuple[join->side[port].key].i);
    if (at >= 0 && join->unique) {
        int32_t status = add_pair(join, port, tuple, keyed_cell(other, at) + 1);
        keyed_remove(other, at);
        return status;
    }
    const xs_slot *cell = at >= 0 ? keyed_cell(other, at) : NULL;
    for (; cell; cell = keyed_older(other, cell)) {
        int32_t status = add_pair(join, port, tuple, cell + 1);
        if (unlikely(status)) return status;
    }
    return keep(op, port, tuple);
}

/* The first tuples of a batch whose home is empty, of `fields` fields; returns how many. */
static inline __attribute__((always_inline)) int64_t keep_rows(xs_keyed *to, const xs_slot *rows,
                                                               int64_t count, int32_t fields)
{
    xs_keyed own = *to; /* in registers */
    own.fields = fields;
    int64_t room = 3 * own.slots / 4 - own.keys, kept = 0;
    for (; kept < count && kept < room; kept++, rows += fields) {
        xs_slot *cell = keyed_cell(&own, keyed_home(&own, rows[own.key].i));
        if (cell->i) break;
        cell->i = KEYED_LAST;
        for (int32_t i = 0; i < fields; i++) cell[1 + i] = rows[i];
    }
    to->keys += kept;
    to->credit += kept;
    return kept;
}

static int64_t keep_run(xs_op *op, int32_t port, const xs_slot *rows, int64_t count)
{
    xs_keyed *own = &((xs_join *)op)->side[port];
    switch (own->fields) { /* the compiler makes code without loops over the fields of small tuples */
    case 2: return keep_rows(own, rows, count, 2);
    case 3: return keep_rows(own, rows, count, 3);
    case 4: return keep_rows(own, rows, count, 4);
    default: return keep_rows(own, rows, count, own->fields);
    }
}

/* Pairs the first tuples of a batch, from the right side and of `rights` fields, with unique keys that
 * are met at home, in tuples of `lefts` fields; returns how many. Keys are the first fields. */
static inline __attribute__((always_inline)) int64_t match_rows(xs_join *join, const xs_slot *rows,
                                                                int64_t count, int32_t lefts,
                                                                int32_t rights)
{
    xs_keyed other = join->side[0]; /* in registers */
    other.fields = lefts;
    int64_t matched = 0, room = MANY - join->paired;
    xs_slot *pair = join->pair + join->paired * (lefts + rights - 1);
    for (; matched < count && matched < room; matched++, rows += rights) {
        xs_slot *cell = keyed_cell(&other, keyed_home(&other, rows->i));
        if (cell->i != KEYED_LAST || cell[1].i != rows->i) break;
        cell->i = 0;
        for (int32_t i = 0; i < lefts; i++) pair[i] = cell[1 + i];
        for (int32_t i = 1; i < rights; i++) pair[lefts + i - 1] = rows[i];
        pair += lefts + rights - 1;
    }
    join->side[0].keys -= matched;
    join->paired += (int32_t)matched;
    return matched;
}

static int64_t match_run(xs_op *op, int32_t port, const xs_slot *rows, int64_t count)
{
    xs_join *join = (xs_join *)op;
    const xs_keyed *left = &join->side[0], *right = &join->side[1];
    int32_t rights = op->in_shape[1].fields;
    if (!port || left->key || right->key || left->displaced) return 0;
    switch (rights == 2 ? left->fields : 0) { /* as above */
    case 2: return match_rows(join, rows, count, 2, 2);
    case 3: return match_rows(join, rows, count, 3, 2);
    case 4: return match_rows(join, rows, count, 4, 2);
    default: return match_rows(join, rows, count, left->fields, rights);
    }
}

/* Tuples without segments; the other side's may have some. */
static int32_t join_process_many(xs_op *op, int32_t port, const xs_slot *rows, int64_t count)
{
    xs_join *join = (xs_join *)op;
    const xs_shape *shape = &op->out[0].shape;
    bool together = !shape->segments;
    if (together && !join->pair)
        join->pair = malloc((size_t)shape->fields * MANY * sizeof *join->pair);
    together = together && join->pair;
    join->side[port].fields = op->in_shape[port].fields;
    int32_t status = XS_OK, fields = op->in_shape[port].fields;
    for (int64_t i = 0; i < count && likely(!status);) {
        bool met = join->side[!port].keys != 0;
        int64_t run = 0;
        if (!met) run = keep_run(op, port, rows, count - i);
        else if (together && join->unique) run = match_run(op, port, rows, count - i);
        i += run;
        rows += run * fields;
        if (i == count) break;
        status = together ? match(op, port, rows) : join_process(op, port, rows);
        if (unlikely(status)) pass_failed(op, port, rows);
        i++;
        rows += fields;
    }
    int32_t passed = emit_paired(join);
    return status ? status : passed;
}

/* Whether tuples of a port would now only be kept. */
static bool join_absorbs(const xs_op *op, int32_t port) { return !((const xs_join *)op)->side[!port].keys; }

static void join_destroy(xs_op *op)
{
    xs_join *join = (xs_join *)op;
    for (int32_t port = 0; port < 2 && op->ins; port++) keyed_free(&join->side[port], &op->in_shape[port]);
    free(join->pair);
}

static void join_save(xs_op *op, xs_image *image)
{
    for (int32_t port = 0; port < 2; port++)
        keyed_save(image, &((xs_join *)op)->side[port], &op->in_shape[port]);
}

static bool join_load(xs_op *op, xs_stored *stored)
{
    xs_keyed *side = ((xs_join *)op)->side;
    return keyed_load(stored, &side[0], &op->in_shape[0], 0) &&
           keyed_load(stored, &side[1], &op->in_shape[1], 1);
}

static const xs_op_table join_table = {
    .process = join_process, .process_many = join_process_many, .absorbs = join_absorbs,
    .destroy = join_destroy, .save = join_save, .load = join_load};

xs_op *xs_op_join(xs_plan *plan, int32_t left_key, int32_t right_key, int32_t unique)
{
    xs_join *join = op_new(plan, sizeof *join, &join_table);
    if (!join) return NULL;
    join->side[0].key = left_key;
    join->side[1].key = right_key;
    join->unique = unique;
    return &join->op;
}
