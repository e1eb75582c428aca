/* zip: combines one tuple of each stream; a queue per input holds the tuples of streams that are
 * ahead. */
#include "buffer.h"

typedef struct {
    xs_op op;
    xs_backlog *backlog; /* one per port */
    int32_t ports, waiting; /* number of ports with an empty queue */
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

static void zip_save(xs_op *op, xs_image *image)
{
    for (int32_t port = 0; port < op->ins; port++)
        backlog_save(image, &((xs_zip *)op)->backlog[port], &op->in_shape[port]);
}

static bool zip_load(xs_op *op, xs_stored *stored)
{
    xs_zip *zip = (xs_zip *)op;
    for (int32_t port = 0; port < op->ins; port++) {
        if (!backlog_load(stored, op, &zip->backlog[port], port)) return false;
        zip->waiting -= zip->backlog[port].length != 0;
    }
    return zip->waiting > 0;
}

static const xs_op_table zip_table = {
    .process = zip_process, .destroy = zip_destroy, .save = zip_save, .load = zip_load};

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
