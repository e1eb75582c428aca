/* Operators in general: making one, failing, and the ways to pass a tuple that are not the usual. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "engine.h"

int64_t engine_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void *op_new(xs_plan *plan, size_t size, const xs_op_table *table)
{
    if (plan->ops == plan->capacity) {
        int32_t capacity = plan->capacity ? 2 * plan->capacity : 16;
        xs_op **ops = realloc(plan->op, (size_t)capacity * sizeof *ops);
        if (!ops) return NULL;
        plan->op = ops;
        plan->capacity = capacity;
    }
    xs_op *op = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!op) return NULL;
    memset(op, 0, size);
    op->plan = plan;
    op->table = table;
    op->process = table->process;
    op->id = plan->ops;
    op->measured = -1;
    plan->op[plan->ops++] = op;
    return op;
}

int32_t op_fail(xs_op *op, const char *format, ...)
{
    xs_plan *plan = op->plan;
    if (!plan->message[0]) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(plan->message, sizeof plan->message, format, arguments);
        va_end(arguments);
    }
    return XS_FAILED;
}

int32_t op_out_of_memory(xs_op *op) { return op_fail(op, "out of memory"); }

void xs_plan_fail(xs_op *op, const char *message) { op_fail(op, "%s", message); }

/* Keeps the first failing tuple, so that whoever reports the failure can show it. */
int32_t pass_failed(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_plan *plan = op->plan;
    if (plan->failed_op) return XS_FAILED;
    const xs_shape *shape = &op->in_shape[port];
    plan->failed_op = op;
    plan->failed_port = port;
    plan->failed_fields = shape->fields;
    plan->failed_segments = shape->segments;
    memcpy(plan->failed_tuple, tuple, (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
    return XS_FAILED;
}

/* Time spent in successors is theirs: what is left is the operator's own. */
int32_t process_timed(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_plan *plan = op->plan;
    int64_t outer_child_ns = plan->child_ns, begin = engine_now_ns();
    plan->child_ns = 0;
    int32_t status = op->process(op, port, tuple);
    int64_t spent = engine_now_ns() - begin;
    op->busy_ns += spent - plan->child_ns;
    op->timed_tuples++;
    plan->child_ns = outer_child_ns + spent;
    return status;
}

/* What cannot simply be called: queued edges, very deep calls, copies on passing, timed tuples. */
static int32_t pass_slowly(const xs_edge *edge, const xs_slot *tuple, const xs_shape *shape)
{
    xs_op *to = edge->to;
    xs_plan *plan = to->plan;
    if (!edge->direct || plan->depth >= MAX_DEPTH) return queue_push(edge->queue, tuple, shape);
    xs_slot own[MAX_FIELDS];
    if (plan->copies && shape->segments) {
        memcpy(own, tuple, (size_t)shape->fields * sizeof *tuple);
        for (uint64_t left = shape->segments; left; left &= left - 1) {
            int field = __builtin_ctzll(left);
            own[field].seg = xs_seg_share(tuple[field].seg);
            if (own[field].seg) continue;
            tuple_drop(own, shape->segments & ((1ull << field) - 1));
            return op_out_of_memory(to);
        }
        tuple = own;
    }
    op_counts(to, tuple);
    plan->depth++;
    int32_t status = plan->timed ? process_timed(to, edge->port, tuple)
                                 : to->process(to, edge->port, tuple);
    if (status == XS_FORWARD) status = emit(to, 0, tuple);
    else if (status) status = pass_failed(to, edge->port, tuple);
    plan->depth--;
    if (tuple == own) tuple_drop(own, shape->segments);
    return status;
}

/* Forwarded tuples go along a chain in a loop: no call nests, however long the chain. */
int32_t pass(const xs_edge *edge, const xs_slot *tuple, const xs_shape *shape)
{
    xs_op *to = edge->to;
    xs_plan *plan = to->plan;
    int32_t port = edge->port;
    if (unlikely(!edge->direct || plan->slow_pass || plan->depth >= MAX_DEPTH))
        return pass_slowly(edge, tuple, shape);
    plan->depth++;
    int32_t status;
    for (;;) {
        op_counts(to, tuple);
        status = to->process(to, port, tuple);
        if (status != XS_FORWARD) break;
        if (unlikely(!to->only)) {
            status = emit(to, 0, tuple);
            plan->depth--;
            return status;
        }
        to->emitted++;
        port = to->only_port;
        to = to->only;
    }
    plan->depth--;
    return likely(!status) ? XS_OK : pass_failed(to, port, tuple);
}

int32_t xs_emit(xs_op *op, int32_t port, const xs_slot *tuple) { return emit(op, port, tuple); }

void xs_op_stats_read(xs_op *op, xs_op_stats *out)
{
    *out = (xs_op_stats){.tuples = op->tuples, .samples = op->samples, .emitted = op->emitted};
    /* Only some tuples are timed; the rest are taken to be like them. */
    if (op->timed_tuples)
        out->busy_ns =
            (int64_t)((double)op->busy_ns * (double)op->tuples / (double)op->timed_tuples);
    for (int32_t i = 0; i < op->ins; i++)
        if (op->in[i].peak > out->queue_peak) {
            out->queue_peak = op->in[i].peak;
            out->queue_peak_bytes =
                op->in[i].peak * op->in_shape[i].fields * (int64_t)sizeof(xs_slot);
        }
}
