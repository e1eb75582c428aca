/* union: merges streams in the order of arrival; the number of the stream precedes each tuple. */
#include "../engine/saving.h"
#include "operators.h"

static int32_t union_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_slot tagged[MAX_FIELDS];
    tagged[0].i = port;
    memcpy(tagged + 1, tuple, (size_t)op->in_shape[port].fields * sizeof *tuple);
    return emit(op, 0, tagged);
}

static xs_op *union_clone(xs_op *op, xs_plan *plan) { return op_copy(op, plan, sizeof *op); }

static const xs_op_table union_table = {
    .process = union_process, .clone = union_clone, .save = save_nothing};

xs_op *xs_op_union(xs_plan *plan) { return op_new(plan, sizeof(xs_op), &union_table); }
