/* Queues between operators. Tuples are copied in and out; a segment is passed on the way in. */
#include "engine.h"

enum { RING_MIN = 16, RING_KEEP = 4096 }; /* tuples; a larger ring is freed when it is empty */

static int32_t ring_fields(const xs_queue *queue) { return queue->op->in_shape[queue->port].fields; }

static bool ring_resize(xs_queue *queue, int64_t capacity)
{
    xs_plan *plan = queue->op->plan;
    int32_t fields = ring_fields(queue);
    size_t row = (size_t)fields * sizeof(xs_slot);
    xs_slot *ring = malloc((size_t)capacity * row);
    if (!ring) return false;
    for (int64_t i = 0; i < queue->length; i++) {
        int64_t at = (queue->head + i) & (queue->capacity - 1);
        memcpy(ring + i * fields, queue->ring + at * fields, row);
    }
    free(queue->ring);
    counter_add(&plan->queue_bytes, (capacity - queue->capacity) * (int64_t)row);
    if (plan->queue_bytes > plan->queue_bytes_peak) counter_set(&plan->queue_bytes_peak, plan->queue_bytes);
    queue->ring = ring;
    queue->capacity = capacity;
    queue->head = 0;
    return true;
}

void queue_mark_ready(xs_queue *queue)
{
    xs_op *op = queue->op;
    xs_plan *plan = op->plan;
    if (plan->scheduler->by_operator) {
        if (op->ready) return;
        op->ready = true;
        op->next_ready = NULL;
        op->previous_ready = plan->ready_op_tail;
        if (plan->ready_op_tail) plan->ready_op_tail->next_ready = op;
        else plan->ready_op_head = op;
        plan->ready_op_tail = op;
    } else if (!queue->ready) {
        queue->ready = true;
        queue->next_ready = NULL;
        if (plan->ready_queue_tail) plan->ready_queue_tail->next_ready = queue;
        else plan->ready_queue_head = queue;
        plan->ready_queue_tail = queue;
    }
}

xs_queue *ready_queue_take(xs_plan *plan)
{
    xs_queue *queue = plan->ready_queue_head;
    if (!queue) return NULL;
    plan->ready_queue_head = queue->next_ready;
    if (!plan->ready_queue_head) plan->ready_queue_tail = NULL;
    queue->ready = false;
    return queue;
}

void ready_op_remove(xs_op *op)
{
    xs_plan *plan = op->plan;
    if (op->previous_ready) op->previous_ready->next_ready = op->next_ready;
    else plan->ready_op_head = op->next_ready;
    if (op->next_ready) op->next_ready->previous_ready = op->previous_ready;
    else plan->ready_op_tail = op->previous_ready;
    op->ready = false;
}

int32_t op_run_waiting(xs_op *op)
{
    for (int32_t port = 0; port < op->ins; port++) {
        xs_queue *queue = &op->in[port];
        for (int64_t waiting = queue->length; waiting; waiting--) {
            int32_t status = queue_run_one(queue);
            if (status) return status;
            if (plan_overdue(op->plan)) goto look_up;
        }
    }
look_up:
    for (int32_t port = 0; port < op->ins; port++) /* a cycle may have brought more */
        if (op->in[port].length) queue_mark_ready(&op->in[port]);
    return XS_OK;
}

/* A free row at the end; NULL without memory. */
static xs_slot *row_behind(xs_queue *queue, int32_t fields)
{
    if (unlikely(queue->length == queue->capacity)) {
        int64_t capacity = queue->capacity ? 2 * queue->capacity : RING_MIN;
        if (!ring_resize(queue, capacity)) return NULL;
    }
    return queue->ring + ((queue->head + queue->length) & (queue->capacity - 1)) * fields;
}

static void row_added(xs_queue *queue)
{
    counter_add(&queue->length, 1);
    if (queue->length > queue->peak) counter_set(&queue->peak, queue->length);
    if (queue->length == 1) queue_mark_ready(queue);
}

/* The error names the operator that should receive the tuple. */
static int32_t push_failed(xs_queue *queue, const xs_slot *tuple)
{
    op_out_of_memory(queue->op);
    return pass_failed(queue->op, queue->port, tuple);
}

int32_t queue_push(xs_queue *queue, const xs_slot *tuple, const xs_shape *shape)
{
    xs_slot *row = row_behind(queue, shape->fields);
    if (!row) return push_failed(queue, tuple);
    for (int32_t i = 0; i < shape->fields; i++) row[i] = tuple[i];
    xs_cost_mark mark;
    bool profiled = unlikely(queue->op->plan->profiled), shared = true;
    if (profiled) cost_enter(queue->op->plan, &mark);
    for (uint64_t left = shape->segments; left && shared; left &= left - 1) {
        int field = __builtin_ctzll(left);
        row[field].seg = xs_seg_share(tuple[field].seg);
        shared = row[field].seg != NULL;
        if (!shared) tuple_drop(row, shape->segments & ((1ull << field) - 1));
    }
    if (profiled) cost_leave_passing(queue->op, &mark);
    if (!shared) return push_failed(queue, tuple);
    row_added(queue);
    return XS_OK;
}

int32_t queue_push_owned(xs_queue *queue, const xs_slot *tuple)
{
    const xs_shape *shape = &queue->op->in_shape[queue->port];
    xs_slot *row = row_behind(queue, shape->fields);
    if (!row) {
        push_failed(queue, tuple);
        tuple_drop(tuple, shape->segments);
        return XS_FAILED;
    }
    for (int32_t i = 0; i < shape->fields; i++) row[i] = tuple[i];
    row_added(queue);
    return XS_OK;
}

bool queue_restore(xs_queue *queue, const xs_slot *tuple)
{
    const xs_shape *shape = &queue->op->in_shape[queue->port];
    xs_slot *row = row_behind(queue, shape->fields);
    if (!row) {
        tuple_drop(tuple, shape->segments);
        return false;
    }
    for (int32_t i = 0; i < shape->fields; i++) row[i] = tuple[i];
    counter_add(&queue->length, 1);
    if (queue->length > queue->peak) counter_set(&queue->peak, queue->length);
    return true;
}

bool queue_pop(xs_queue *queue, xs_slot *tuple)
{
    if (!queue->length) return false;
    int32_t fields = ring_fields(queue);
    const xs_slot *row = queue->ring + queue->head * fields;
    for (int32_t i = 0; i < fields; i++) tuple[i] = row[i];
    queue->head = (queue->head + 1) & (queue->capacity - 1);
    counter_add(&queue->length, -1);
    if (queue->length == 0 && queue->capacity > RING_KEEP) {
        counter_add(&queue->op->plan->queue_bytes,
                    -queue->capacity * fields * (int64_t)sizeof(xs_slot));
        free(queue->ring);
        queue->ring = NULL;
        queue->capacity = queue->head = 0;
    }
    return true;
}

int32_t queue_run_one(xs_queue *queue)
{
    xs_slot tuple[MAX_FIELDS];
    return queue_pop(queue, tuple) ? queue_run_owned(queue, tuple) : XS_OK;
}

int32_t queue_run_owned(xs_queue *queue, xs_slot *tuple)
{
    xs_op *op = queue->op;
    xs_plan *plan = op->plan;
    op_counts(op, tuple);
    plan_sample_timing(plan);
    /* The copy was made when the tuple was queued, so it is passed by reference even under
     * copy-always. */
    plan->given = tuple;
    int32_t status = unlikely(plan->timed) ? process_timed(op, queue->port, tuple)
                                           : op->process(op, queue->port, tuple);
    if (status == XS_FORWARD) {
        const xs_out *out = &op->out[0];
        if (out->edges == 1 && !out->edge->direct && !out->edge->ring && !plan->copies) {
            counter_add(&op->emitted, 1); /* from queue to queue: the counts move too */
            return queue_push_owned(out->edge->queue, tuple);
        }
        status = emit_giving(op, 0, tuple, plan->given);
    } else if (unlikely(status)) {
        pass_failed(op, queue->port, tuple);
    }
    plan->given = NULL;
    tuple_drop(tuple, op->in_shape[queue->port].segments);
    return status;
}

void queue_clear(xs_queue *queue)
{
    xs_slot tuple[MAX_FIELDS];
    while (queue_pop(queue, tuple)) tuple_drop(tuple, queue->op->in_shape[queue->port].segments);
    free(queue->ring);
    queue->ring = NULL;
    queue->capacity = 0;
}

const xs_slot *queue_last(const xs_queue *queue)
{
    int64_t at = (queue->head + queue->length - 1) & (queue->capacity - 1);
    return queue->ring + at * ring_fields(queue);
}

void queue_drop_last(xs_queue *queue)
{
    tuple_drop(queue_last(queue), queue->op->in_shape[queue->port].segments);
    counter_add(&queue->length, -1);
}
