/* select: some fields of a tuple, in any order; segments pass by reference. */
#include "engine.h"

typedef struct {
    xs_op op;
    int32_t field[MAX_FIELDS];
} xs_select;

static int32_t select_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    const xs_select *select = (const xs_select *)op;
    xs_slot chosen[MAX_FIELDS];
    for (int32_t i = 0; i < op->out[0].shape.fields; i++) chosen[i] = tuple[select->field[i]];
    return emit(op, 0, chosen);
}

static const xs_op_table select_table = {.process = select_process};

xs_op *xs_op_select(xs_plan *plan, const int32_t *fields, int32_t count)
{
    xs_select *select = op_new(plan, sizeof *select, &select_table);
    if (!select) return NULL;
    memcpy(select->field, fields, (size_t)count * sizeof *fields);
    return &select->op;
}
