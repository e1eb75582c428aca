/* zip and union: tuples of several streams put together, in step or as they come. */
#include "buffer.h"

typedef struct {
    xs_op op;
    xs_backlog *backlog; /* one a port */
    int32_t ports, waiting; /* how many ports have nothing */
} xs_zip;

static int32_t emit_fronts(xs_zip *zip)
{
    xs_slot joined[MAX_FIELDS];
    const xs_shape *shape = zip->op.in_shape;
    int32_t fields = 0;
    for (int32_t port = 0; port < zip->ports; port++) {
        memcpy(joined + fields, backlog_front(&zip->backlog[port], &shape[port]),
               (size_t)shape[port].fields * sizeof *joined);
        fields += shape[port].fields;
    }
    int32_t status = emit(&zip->op, 0, joined);
    for (int32_t port = 0; port < zip->ports; port++) {
        backlog_pop(&zip->backlog[port], &shape[port]);
        zip->waiting += zip->backlog[port].length == 0;
    }
    return status;
}

static int32_t zip_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_zip *zip = (xs_zip *)op;
    xs_backlog *backlog = &zip->backlog[port];
    int32_t status = backlog_push(op, backlog, tuple, &op->in_shape[port]);
    if (status) return status;
    if (backlog->length == 1) zip->waiting--;
    return zip->waiting ? XS_OK : emit_fronts(zip);
}

static void zip_destroy(xs_op *op)
{
    xs_zip *zip = (xs_zip *)op;
    for (int32_t port = 0; port < op->ins; port++)
        backlog_drop(&zip->backlog[port], &op->in_shape[port]);
    free(zip->backlog);
}

static const xs_op_table zip_table = {.process = zip_process, .destroy = zip_destroy};

xs_op *xs_op_zip(xs_plan *plan, int32_t ports)
{
    xs_backlog *backlog = calloc((size_t)ports, sizeof *backlog);
    xs_zip *zip = backlog ? op_new(plan, sizeof *zip, &zip_table) : NULL;
    if (!zip) {
        free(backlog);
        return NULL;
    }
    zip->backlog = backlog;
    zip->ports = zip->waiting = ports;
    return &zip->op;
}

/* -- union: each tuple behind the number of its stream ------------------------------------- */

static int32_t union_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_slot tagged[MAX_FIELDS];
    tagged[0].i = port;
    memcpy(tagged + 1, tuple, (size_t)op->in_shape[port].fields * sizeof *tuple);
    return emit(op, 0, tagged);
}

static const xs_op_table union_table = {.process = union_process};

xs_op *xs_op_union(xs_plan *plan) { return op_new(plan, sizeof(xs_op), &union_table); }

/* -- select: some fields of a tuple, in any order ------------------------------------------- */

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

static const xs_op_table select_table = {.process = select_process};

xs_op *xs_op_select(xs_plan *plan, int32_t fields, const int32_t *chosen)
{
    xs_select *select = op_new(plan, sizeof *select, &select_table);
    if (select) memcpy(select->chosen, chosen, (size_t)fields * sizeof *chosen);
    return select ? &select->op : NULL;
}
