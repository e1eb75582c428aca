/* merge by a field: merges streams in the order of an integer that ascends in each of them. */
#include "buffer.h"

typedef struct {
    xs_backlog backlog;
    int64_t last; /* value of the field in the newest tuple */
} xs_ordered_port;

typedef struct {
    xs_op op;
    xs_ordered_port *port;
    int32_t field;
    bool tagged; /* put the number of the stream in front of each tuple */
} xs_ordered;

static int64_t front_value(const xs_ordered *ordered, int32_t port)
{
    return backlog_front(&ordered->port[port].backlog, &ordered->op.in_shape[port])[ordered->field].i;
}

static int32_t emit_front(xs_ordered *ordered, int32_t port, const xs_shape *shape)
{
    const xs_slot *tuple = backlog_front(&ordered->port[port].backlog, shape);
    if (!ordered->tagged) return emit(&ordered->op, 0, tuple);
    xs_slot tagged[MAX_FIELDS];
    tagged[0].i = port;
    memcpy(tagged + 1, tuple, (size_t)shape->fields * sizeof *tuple);
    return emit(&ordered->op, 0, tagged);
}

/* Emits tuples with values up to `upto`, in order; equal values in the order of the ports. */
static int32_t emit_upto(xs_ordered *ordered, int64_t upto)
{
    for (;;) {
        int32_t first = -1;
        int64_t least = upto;
        for (int32_t port = 0; port < ordered->op.ins; port++) {
            if (!ordered->port[port].backlog.length) continue;
            int64_t value = front_value(ordered, port);
            if (value < least || (value == least && first < 0)) {
                least = value;
                first = port;
            }
        }
        if (first < 0) return XS_OK;
        xs_backlog *backlog = &ordered->port[first].backlog;
        const xs_shape *shape = &ordered->op.in_shape[first];
        int32_t status = emit_front(ordered, first, shape);
        backlog_pop(backlog, shape);
        if (status) return status;
    }
}

/* Every stream ascends, so no tuple below the least newest value can still arrive. */
static int32_t ordered_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_ordered *ordered = (xs_ordered *)op;
    xs_ordered_port *mine = &ordered->port[port];
    int64_t value = tuple[ordered->field].i;
    if (value <= mine->last)
        return op_fail(op, "a tuple with %lld came behind one with %lld: streams that are merged "
                       "by a field ascend in it", (long long)value, (long long)mine->last);
    int32_t status = backlog_push(op, &mine->backlog, tuple, &op->in_shape[port]);
    if (status) return status;
    mine->last = value;
    int64_t complete = value;
    for (int32_t i = 0; i < op->ins; i++)
        if (ordered->port[i].last < complete) complete = ordered->port[i].last;
    return emit_upto(ordered, complete);
}

static int32_t ordered_finish(xs_op *op) { return emit_upto((xs_ordered *)op, INT64_MAX); }

static void ordered_destroy(xs_op *op)
{
    xs_ordered *ordered = (xs_ordered *)op;
    for (int32_t port = 0; port < op->ins; port++)
        backlog_drop(&ordered->port[port].backlog, &op->in_shape[port]);
    free(ordered->port);
}

static void ordered_save(xs_op *op, xs_image *image)
{
    for (int32_t port = 0; port < op->ins; port++) {
        save_int(image, ((xs_ordered *)op)->port[port].last);
        backlog_save(image, &((xs_ordered *)op)->port[port].backlog, &op->in_shape[port]);
    }
}

static bool ordered_load(xs_op *op, xs_stored *stored)
{
    xs_ordered *ordered = (xs_ordered *)op;
    for (int32_t port = 0; port < op->ins; port++)
        if (!load_int(stored, &ordered->port[port].last) ||
            !backlog_load(stored, op, &ordered->port[port].backlog, port))
            return false;
    return true;
}

static const xs_op_table ordered_table = {
    .process = ordered_process, .finish = ordered_finish, .destroy = ordered_destroy,
    .save = ordered_save, .load = ordered_load};

xs_op *xs_op_ordered(xs_plan *plan, int32_t ports, int32_t field, int32_t tagged)
{
    xs_ordered_port *port = calloc((size_t)ports, sizeof *port);
    xs_ordered *ordered = port ? op_new(plan, sizeof *ordered, &ordered_table) : NULL;
    if (!ordered) {
        free(port);
        return NULL;
    }
    for (int32_t i = 0; i < ports; i++) port[i].last = INT64_MIN;
    ordered->port = port;
    ordered->field = field;
    ordered->tagged = tagged != 0;
    return &ordered->op;
}
