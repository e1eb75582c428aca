/* select: some fields of a tuple, in any order. */
#include "../engine/saving.h"
#include "operators.h"

typedef struct {
    xs_op op;
    int32_t chosen[MAX_FIELDS];
} xs_select;

static int32_t select_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    const xs_select *select = (xs_select *)op;
    xs_slot row[MAX_FIELDS];
    for (int32_t i = 0; i < op->out[0].shape.fields; i++) row[i] = tuple[select->chosen[i]];
    return emit(op, 0, row);
}

static xs_op *select_clone(xs_op *op, xs_plan *plan)
{
    return op_copy(op, plan, sizeof(xs_select));
}

static const xs_op_table select_table = {
    .process = select_process, .clone = select_clone, .save = save_nothing};

xs_op *xs_op_select(xs_plan *plan, int32_t fields, const int32_t *chosen)
{
    xs_select *select = op_new(plan, sizeof *select, &select_table);
    if (select) memcpy(select->chosen, chosen, (size_t)fields * sizeof *chosen);
    return select ? &select->op : NULL;
}
