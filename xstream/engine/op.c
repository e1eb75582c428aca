/* Operators: creation, failure, and the slow paths of passing a tuple. */
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

/* Replaces the process function for an operator's first tuples. */
static int32_t process_first(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_plan *plan = op->plan;
    if (op->tuples >= FIRST_TIMED) op->process = op->table->process;
    plan_set_timing(plan, true, 1);
    int32_t status = process_timed(op, port, tuple);
    plan_set_timing(plan, false, 1);
    return status;
}

/* Operators of a plan lie side by side, so that passing a tuple along a chain of them reads memory in
 * order. Sanitized builds allocate each one alone, to see accesses past its end. */
#ifdef __SANITIZE_ADDRESS__
enum { CHUNK_BYTES = 0 };
#else
enum { CHUNK_BYTES = 1 << 14 };
#endif

struct xs_op_chunk {
    struct xs_op_chunk *next;
    size_t used, size;
    _Alignas(64) char bytes[];
};

static void *chunk_take(xs_plan *plan, size_t size)
{
    xs_op_chunk *chunk = plan->chunk;
    size = (size + 63) / 64 * 64;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = aligned_alloc(64, sizeof *chunk + room);
        if (!chunk) return NULL;
        *chunk = (xs_op_chunk){.next = plan->chunk, .size = room};
        plan->chunk = chunk;
    }
    void *taken = chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
}

void op_chunks_free(xs_plan *plan)
{
    while (plan->chunk) {
        xs_op_chunk *chunk = plan->chunk;
        plan->chunk = chunk->next;
        free(chunk);
    }
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
    xs_op *op = chunk_take(plan, size);
    if (!op) return NULL;
    memset(op, 0, size);
    op->plan = plan;
    op->table = table;
    op->process = process_first;
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

void *op_copy(xs_op *op, xs_plan *plan, size_t size)
{
    xs_op *copy = op_new(plan, size, op->table);
    if (!copy) return NULL;
    memcpy(copy + 1, op + 1, size - sizeof *op);
    return copy;
}

void plan_out_of_memory(xs_plan *plan)
{
    if (plan->message[0]) return;
    plan->out_of_memory = true;
    snprintf(plan->message, sizeof plan->message, "out of memory");
}

int32_t op_out_of_memory(xs_op *op)
{
    plan_out_of_memory(op->plan);
    return XS_FAILED;
}

int32_t op_outside(xs_op *op, int64_t start, int64_t width)
{
    return op_fail(op, "a segment of %lld samples from index %lld lies outside the indices of a "
                   "signal, which end at 2**62", (long long)width, (long long)start);
}

int32_t pass_failed(xs_op *op, int32_t port, const xs_slot *tuple)
{
    return plan_failed_at(op->plan, op, port, tuple);
}

/* Keeps the first failing tuple for the error message. */
int32_t plan_failed_at(xs_plan *plan, xs_op *op, int32_t port, const xs_slot *tuple)
{
    if (plan->failed_op) return XS_FAILED;
    const xs_shape *shape = &op->in_shape[port];
    plan->failed_op = op;
    plan->failed_port = port;
    plan->failed_fields = shape->fields;
    plan->failed_segments = shape->segments;
    memcpy(plan->failed_tuple, tuple, (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1) {
        xs_seg *seg = tuple[__builtin_ctzll(left)].seg;
        if (seg) xs_seg_ref(seg);
        else plan->failed_segments &= ~(left & -left); /* taken by a successor */
    }
    return XS_FAILED;
}

/* Time spent in successors is charged to them, the rest to the operator. */
int32_t process_timed(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_plan *plan = op->plan;
    xs_cost_mark mark;
    if (plan->profiled) cost_enter(plan, &mark);
    int64_t outer_child_ns = plan->child_ns, begin = engine_now_ns();
    plan->child_ns = 0;
    int32_t status = op->table->process(op, port, tuple);
    int64_t spent = engine_now_ns() - begin;
    if (unlikely(!op->timed_tuples) && plan->weight == 1) op->first_ns = spent - plan->child_ns;
    counter_add(&op->busy_ns, plan->weight * (spent - plan->child_ns));
    counter_add(&op->timed_tuples, plan->weight);
    plan->child_ns = outer_child_ns + spent;
    if (plan->profiled) cost_leave(op, &mark);
    return status;
}

/* Segments as copy-always passes them: copies, which replace those in `own`. */
static bool tuple_copied(xs_slot *own, const xs_slot *from, const xs_shape *shape)
{
    bool in_place = own == from;
    if (!in_place) memcpy(own, from, (size_t)shape->fields * sizeof *own);
    for (uint64_t left = shape->segments; left; left &= left - 1) {
        int field = __builtin_ctzll(left);
        xs_seg *copy = xs_seg_share(from[field].seg);
        if (!copy) {
            if (!in_place) tuple_drop(own, shape->segments & ((1ull << field) - 1));
            return false;
        }
        if (in_place) xs_seg_drop(own[field].seg);
        own[field].seg = copy;
    }
    return true;
}

static bool stack_is_short(const xs_plan *plan)
{
    return (uintptr_t)__builtin_frame_address(0) < plan->stack_floor;
}

/* All cases other than a plain call: queued edges, operators of other threads, deep calls, copies on
 * passing, timed tuples. Forwarded tuples pass along a chain in a loop here too. */
static int32_t pass_slowly(const xs_edge *edge, const xs_slot *tuple, const xs_shape *shape)
{
    xs_slot own[MAX_FIELDS];
    xs_plan *given_by = NULL;
    int32_t status;
    for (;;) {
        if (edge->carried) {
            status = XS_OK;
            break;
        }
        if (edge->fan) {
            status = ring_pass_fan(edge->ring, edge->fan, tuple);
            break;
        }
        xs_op *to = edge->ring ? ring_stand_in(edge, tuple) : edge->to;
        if (!to) {
            status = ring_pass(edge->ring, edge->queue, tuple, shape);
            break;
        }
        xs_plan *plan = to->plan;
        if (to->original && stack_is_short(plan)) { /* a clone has no queue */
            status = ring_pass(plan->ring_out, &to->original->in[edge->port], tuple, shape);
            break;
        }
        bool called = edge->direct || edge->ring;
        if (!called || stack_is_short(plan) || (!edge->ring && plan->spilled && edge->queue->length)) {
            if (edge->direct) plan->spilled = plan->slow_pass = true;
            status = queue_push(edge->queue, tuple, shape);
            break;
        }
        if (plan->copies && shape->segments) {
            xs_cost_mark mark;
            if (plan->profiled) cost_enter(plan, &mark);
            bool passed = tuple_copied(own, tuple, shape);
            if (plan->profiled) cost_leave_passing(to, &mark);
            if (!passed) {
                op_out_of_memory(to);
                status = pass_failed(to, edge->port, tuple);
                break;
            }
            tuple = plan->given = own;
            given_by = plan;
        }
        op_counts(to, tuple);
        status = plan->timed ? process_timed(to, edge->port, tuple)
                             : to->process(to, edge->port, tuple);
        if (status != XS_FORWARD) {
            if (status) status = pass_failed(to, edge->port, tuple);
            break;
        }
        const xs_out *out = &to->out[0];
        if (out->edges != 1) {
            status = emit_giving(to, 0, tuple, plan->given);
            break;
        }
        counter_add(&to->emitted, 1);
        edge = out->edge;
    }
    if (given_by) {
        given_by->given = NULL;
        tuple_drop(own, shape->segments);
    }
    return status;
}

/* Forwarded tuples pass along a chain in a loop, so that calls do not nest. */
static inline int32_t pass_along(xs_op *to, int32_t port, const xs_slot *tuple)
{
    xs_plan *plan = to->plan;
    for (;;) {
        op_counts(to, tuple);
        int32_t status = to->process(to, port, tuple);
        if (status != XS_FORWARD) return likely(!status) ? XS_OK : pass_failed(to, port, tuple);
        if (unlikely(!to->only || plan->slow_pass))
            return emit_giving(to, 0, tuple, plan->given);
        counter_add(&to->emitted, 1);
        port = to->only_port;
        to = to->only;
    }
}

int32_t pass(const xs_edge *edge, const xs_slot *tuple, const xs_shape *shape)
{
    const xs_plan *plan = edge->to->plan;
    if (unlikely(!edge->direct || plan->slow_pass || stack_is_short(plan)))
        return pass_slowly(edge, tuple, shape);
    return pass_along(edge->to, edge->port, tuple);
}

int32_t pass_to_only(const xs_op *op, const xs_slot *tuple)
{
    const xs_plan *plan = op->only->plan;
    if (unlikely(plan->slow_pass || stack_is_short(plan)))
        return pass_slowly(op->out[0].edge, tuple, &op->out[0].shape);
    return pass_along(op->only, op->only_port, tuple);
}

/* Only some tuples are timed; the others are assumed to take as long. */
int64_t op_busy_ns(const xs_op *op)
{
    int64_t timed = counter_get(&op->timed_tuples);
    if (!timed) return 0;
    return (int64_t)((double)counter_get(&op->busy_ns) * (double)counter_get(&op->tuples) / (double)timed);
}

int64_t op_steady_ns(const xs_op *op)
{
    int64_t later = op->timed_tuples - 1;
    if (!op->first_ns || later <= 0) return op_busy_ns(op);
    return (int64_t)((double)(op->busy_ns - op->first_ns) * (double)op->tuples / (double)later);
}

/* Whether rows can be passed edge by edge: to the only successor, or where only one does not absorb. */
static bool takes_many(const xs_op *op)
{
    const xs_out *out = &op->out[0];
    if (op->plan->slow_pass || !(op->only || out->apart)) return false;
    int32_t others = 0;
    for (int32_t i = 0; i < out->edges; i++) {
        const xs_op *to = out->edge[i].to;
        if (!to->table->process_many || to->process != to->table->process) return false;
        others += !to->table->absorbs || !to->table->absorbs(to, out->edge[i].port);
    }
    return out->edges == 1 || others <= 1;
}

/* Rows without segments, to an operator that takes several at once; its first ones are timed one by
 * one. */
int32_t emit_many(xs_op *op, const xs_slot *rows, int64_t count)
{
    const xs_out *out = &op->out[0];
    int32_t status = XS_OK;
    if (count == 1 || !takes_many(op)) {
        for (int64_t i = 0; i < count && !status; i++) status = emit(op, 0, rows + i * out->shape.fields);
        return status;
    }
    counter_add(&op->emitted, count);
    for (int32_t i = 0; i < out->edges && !status; i++) {
        xs_op *to = out->edge[i].to;
        int32_t port = out->edge[i].port;
        counter_add(&to->tuples, count);
        counter_add(&to->samples, count);
        status = to->table->process_many(to, port, rows, count);
        if (unlikely(status)) pass_failed(to, port, rows);
    }
    return status;
}
