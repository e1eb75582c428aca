/* wait_for and delay: tuples are held and leave in the order of arrival. */
#include "buffer.h"
#include "table.h"

/* -- wait_for -------------------------------------------------------------------------------- */

enum { HELD, AWAITED };

typedef struct {
    xs_op op;
    xs_backlog held;
    int32_t field[2]; /* in each of the two streams */
    bool equal;       /* wait for an equal field; otherwise for one that is at least equal */
    bool flush, begun;
    int64_t reached;  /* the largest value received */
    xs_table seen;    /* all values received, if they must be equal */
} xs_wait;

static bool may_leave(const xs_wait *wait, const xs_slot *tuple)
{
    int64_t value = tuple[wait->field[HELD]].i;
    if (wait->equal) return table_find(&wait->seen, &value) >= 0;
    return wait->begun && value <= wait->reached;
}

static int32_t release(xs_op *op, xs_backlog *held)
{
    int32_t status = emit(op, 0, backlog_front(held, &op->in_shape[HELD]));
    backlog_pop(held, &op->in_shape[HELD]);
    return status;
}

static int32_t wait_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_wait *wait = (xs_wait *)op;
    int32_t status = XS_OK;
    if (port == HELD) {
        if (!wait->held.length && may_leave(wait, tuple)) return XS_FORWARD;
        status = backlog_push(op, &wait->held, tuple, &op->in_shape[HELD]);
    } else {
        int64_t value = tuple[wait->field[AWAITED]].i;
        if (wait->equal && table_add(&wait->seen, &value) < 0) return op_out_of_memory(op);
        if (!wait->begun || value > wait->reached) wait->reached = value;
        wait->begun = true;
    }
    while (!status && wait->held.length &&
           may_leave(wait, backlog_front(&wait->held, &op->in_shape[HELD])))
        status = release(op, &wait->held);
    return status;
}

/* At the end, releases or drops the tuples that are still held. */
static int32_t wait_finish(xs_op *op)
{
    xs_wait *wait = (xs_wait *)op;
    int32_t status = XS_OK;
    if (!wait->flush) {
        counter_add(&op->dropped, wait->held.length);
        backlog_drop(&wait->held, &op->in_shape[HELD]);
    }
    while (!status && wait->held.length) status = release(op, &wait->held);
    return status;
}

static void wait_destroy(xs_op *op)
{
    xs_wait *wait = (xs_wait *)op;
    if (op->ins) backlog_drop(&wait->held, &op->in_shape[HELD]);
    table_free(&wait->seen);
}

static void wait_save(xs_op *op, xs_image *image)
{
    const xs_wait *wait = (xs_wait *)op;
    save_int(image, wait->begun);
    save_int(image, wait->reached);
    backlog_save(image, &wait->held, &op->in_shape[HELD]);
    table_save(image, &wait->seen);
}

static bool wait_load(xs_op *op, xs_stored *stored)
{
    xs_wait *wait = (xs_wait *)op;
    return load_flag(stored, &wait->begun) && load_int(stored, &wait->reached) &&
           backlog_load(stored, op, &wait->held, HELD) && table_load(stored, &wait->seen);
}

static const xs_op_table wait_table = {
    .process = wait_process, .finish = wait_finish, .destroy = wait_destroy,
    .save = wait_save, .load = wait_load};

xs_op *xs_op_wait_for(xs_plan *plan, int32_t held, int32_t awaited, int32_t equal, int32_t flush)
{
    xs_wait *wait = op_new(plan, sizeof *wait, &wait_table);
    if (!wait) return NULL;
    wait->field[HELD] = held;
    wait->field[AWAITED] = awaited;
    wait->equal = equal != 0;
    wait->flush = flush != 0;
    table_begin(&wait->seen, 1, 0);
    return &wait->op;
}

/* -- delay ----------------------------------------------------------------------------------- */

typedef struct {
    xs_op op;
    xs_backlog held;
    int64_t amount;
    int32_t time;  /* the field that the delay is measured in; -1: in tuples */
    bool stamped;  /* adds the delay to the time field */
    int64_t reached;
} xs_delay;

static bool is_due(const xs_delay *delay)
{
    if (delay->time < 0) return delay->held.length > delay->amount;
    int64_t time = backlog_front(&delay->held, &delay->op.in_shape[HELD])[delay->time].i, due;
    return !__builtin_add_overflow(time, delay->amount, &due) && due <= delay->reached;
}

static int32_t let_go(xs_delay *delay)
{
    xs_op *op = &delay->op;
    if (!delay->stamped) return release(op, &delay->held);
    xs_slot *front = backlog_front(&delay->held, &op->in_shape[HELD]);
    if (__builtin_add_overflow(front[delay->time].i, delay->amount, &front[delay->time].i))
        return op_fail(op, "a time that is later by %lld does not fit into 64 bits",
                       (long long)delay->amount);
    return release(op, &delay->held);
}

static int32_t delay_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_delay *delay = (xs_delay *)op;
    int32_t status = backlog_push(op, &delay->held, tuple, &op->in_shape[HELD]);
    if (delay->time >= 0 && tuple[delay->time].i > delay->reached)
        delay->reached = tuple[delay->time].i;
    while (!status && delay->held.length && is_due(delay)) status = let_go(delay);
    return status;
}

static int32_t delay_finish(xs_op *op)
{
    xs_delay *delay = (xs_delay *)op;
    int32_t status = XS_OK;
    while (!status && delay->held.length) status = let_go(delay);
    return status;
}

static void delay_destroy(xs_op *op)
{
    xs_delay *delay = (xs_delay *)op;
    if (op->ins) backlog_drop(&delay->held, &op->in_shape[HELD]);
}

static void delay_save(xs_op *op, xs_image *image)
{
    save_int(image, ((xs_delay *)op)->reached);
    backlog_save(image, &((xs_delay *)op)->held, &op->in_shape[HELD]);
}

static bool delay_load(xs_op *op, xs_stored *stored)
{
    xs_delay *delay = (xs_delay *)op;
    return load_int(stored, &delay->reached) && backlog_load(stored, op, &delay->held, HELD);
}

static const xs_op_table delay_table = {
    .process = delay_process, .finish = delay_finish, .destroy = delay_destroy,
    .save = delay_save, .load = delay_load};

xs_op *xs_op_delay(xs_plan *plan, int64_t amount, int32_t time, int32_t stamped)
{
    xs_delay *delay = op_new(plan, sizeof *delay, &delay_table);
    if (!delay) return NULL;
    delay->amount = amount;
    delay->time = time;
    delay->stamped = stamped != 0;
    delay->reached = INT64_MIN;
    return &delay->op;
}
