/* The basic operators: pass and the sinks count and collect. */
#include "../engine/saving.h"
#include "operators.h"

/* -- pass ---------------------------------------------------------------------------------- */

static int32_t pass_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    return XS_FORWARD;
}

static int32_t pass_process_many(xs_op *op, int32_t port, const xs_slot *rows, int64_t count)
{
    return emit_many(op, rows, count);
}

static xs_op *pass_clone(xs_op *op, xs_plan *plan) { return op_copy(op, plan, sizeof *op); }

static const xs_op_table pass_table = {
    .process = pass_process, .process_many = pass_process_many, .clone = pass_clone, .save = save_nothing};

xs_op *xs_op_pass(xs_plan *plan) { return op_new(plan, sizeof(xs_op), &pass_table); }

/* -- count --------------------------------------------------------------------------------- */

static int32_t count_process(xs_op *op, int32_t port, const xs_slot *tuple) { return XS_OK; }

static int32_t count_process_many(xs_op *op, int32_t port, const xs_slot *rows, int64_t count)
{
    return XS_OK;
}

static const xs_op_table count_table = {
    .process = count_process, .process_many = count_process_many, .save = save_nothing};

xs_op *xs_op_count(xs_plan *plan) { return op_new(plan, sizeof(xs_op), &count_table); }

/* -- collect ------------------------------------------------------------------------------- */

typedef struct {
    xs_op op;
    xs_slot *rows;
    int64_t length, capacity;
} xs_collect;

static int32_t collect_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_collect *sink = (xs_collect *)op;
    const xs_shape *shape = &op->in_shape[0];
    if (sink->length == sink->capacity) {
        int64_t capacity = sink->capacity ? 2 * sink->capacity : 64;
        xs_slot *rows = realloc(sink->rows, (size_t)(capacity * shape->fields) * sizeof *rows);
        if (!rows) return op_out_of_memory(op);
        sink->rows = rows;
        sink->capacity = capacity;
    }
    memcpy(sink->rows + sink->length++ * shape->fields, tuple, (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
    return XS_OK;
}

static void collect_destroy(xs_op *op)
{
    xs_collect *sink = (xs_collect *)op;
    for (int64_t i = 0; i < sink->length; i++)
        tuple_drop(sink->rows + i * op->in_shape[0].fields, op->in_shape[0].segments);
    free(sink->rows);
}

static void collect_save(xs_op *op, xs_image *image)
{
    const xs_collect *sink = (xs_collect *)op;
    save_int(image, sink->length);
    for (int64_t i = 0; i < sink->length; i++)
        save_tuple(image, sink->rows + i * op->in_shape[0].fields, &op->in_shape[0]);
}

static bool collect_load(xs_op *op, xs_stored *stored)
{
    const xs_shape *shape = &op->in_shape[0];
    xs_slot tuple[MAX_FIELDS];
    int64_t length;
    if (!load_count(stored, 8, &length)) return false;
    for (int64_t i = 0; i < length; i++) {
        if (!load_tuple(stored, 0, tuple)) return false;
        int32_t status = collect_process(op, 0, tuple);
        tuple_drop(tuple, shape->segments);
        if (status) return load_refused(stored, "no memory is left");
    }
    return true;
}

static const xs_op_table collect_table = {
    .process = collect_process, .destroy = collect_destroy, .save = collect_save, .load = collect_load};

xs_op *xs_op_collect(xs_plan *plan) { return op_new(plan, sizeof(xs_collect), &collect_table); }

int64_t xs_collected(xs_op *op) { return ((xs_collect *)op)->length; }

const xs_slot *xs_collected_tuple(xs_op *op, int64_t number)
{
    return ((xs_collect *)op)->rows + number * op->in_shape[0].fields;
}
