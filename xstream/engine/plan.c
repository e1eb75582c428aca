/* Plans: construction, failures, and when to read the clock. */
#include "engine.h"

enum { LOOK_EVERY_MAX = 32 }; /* tuples between two readings of the clock */

xs_plan *xs_plan_new(xs_manager *manager)
{
    xs_plan *plan = aligned_alloc(64, sizeof *plan);
    if (!plan) return NULL;
    memset(plan, 0, sizeof *plan);
    plan->manager = manager;
    plan->copies = manager->kind == XS_COPY_ALWAYS;
    manager_hold(manager);
    return plan;
}

static void op_free(xs_op *op)
{
    for (int32_t port = 0; port < op->ins; port++) queue_clear(&op->in[port]);
    if (op->table->destroy) op->table->destroy(op);
    for (int32_t port = 0; port < op->outs; port++) {
        for (int32_t e = 0; e < op->out[port].edges; e++) free(op->out[port].edge[e].fan);
        free(op->out[port].edge);
    }
    free(op->out);
    free(op->in);
    free(op->in_shape);
    free(op->cost);
    if (op->arrivals) free(op->arrivals->under_way);
    free(op->arrivals);
    free(op->clone);
}

void xs_plan_free(xs_plan *plan)
{
    if (plan->ring_out) ring_free(plan->ring_out); /* its tuples are for operators of other parts */
    plan->ring_out = NULL;
    for (int32_t i = 0; i < plan->parts - 1; i++) {
        if (plan->later[i]->ring_out) ring_free(plan->later[i]->ring_out);
        plan->later[i]->ring_out = NULL;
    }
    for (int32_t i = 0; i < plan->ops; i++) op_free(plan->op[i]);
    for (int32_t i = 0; i < plan->parts - 1; i++) xs_plan_free(plan->later[i]);
    if (plan->failed_op) tuple_drop(plan->failed_tuple, plan->failed_segments);
    xs_manager *manager = plan->manager;
    if (!plan->part) free(plan->order); /* the others' is a part of it */
    free(plan->later);
    free(plan->source);
    free(plan->op);
    op_chunks_free(plan);
    free(plan);
    xs_manager_drop(manager);
}

int32_t xs_plan_shape_in(xs_op *op, int32_t ports, const xs_shape *shapes)
{
    op->in = calloc((size_t)ports + 1, sizeof *op->in);
    op->in_shape = calloc((size_t)ports + 1, sizeof *op->in_shape);
    if (!op->in || !op->in_shape) return XS_FAILED;
    op->ins = ports;
    for (int32_t port = 0; port < ports; port++) {
        op->in_shape[port] = shapes[port];
        op->in[port] = (xs_queue){.op = op, .port = port};
    }
    uint64_t segments = ports ? shapes[0].segments : 0;
    op->measured = segments ? __builtin_ctzll(segments) : -1;
    for (int32_t port = 1; port < ports; port++) /* one field for all ports, or none */
        if (op->measured >= 0 && !(shapes[port].segments >> op->measured & 1)) op->measured = -1;
    return XS_OK;
}

int32_t xs_plan_shape_out(xs_op *op, int32_t ports, const xs_shape *shapes)
{
    op->out = calloc((size_t)ports + 1, sizeof *op->out);
    if (!op->out) return XS_FAILED;
    op->outs = ports;
    for (int32_t port = 0; port < ports; port++) op->out[port].shape = shapes[port];
    return XS_OK;
}

int32_t xs_plan_connect(xs_op *from, int32_t out_port, xs_op *to, int32_t in_port)
{
    xs_out *out = &from->out[out_port];
    xs_edge *edges = realloc(out->edge, (size_t)(out->edges + 1) * sizeof *edges);
    if (!edges) return XS_FAILED;
    edges[out->edges++] = (xs_edge){.to = to, .queue = &to->in[in_port], .port = in_port};
    out->edge = edges;
    return XS_OK;
}

bool plan_look_up(xs_plan *plan)
{
    int64_t now = engine_now_ns(), spent = now - plan->looked_ns;
    if (spent > 1000000) plan->look_every = plan->look_every > 8 ? plan->look_every / 8 : 1;
    else if (spent < 100000 && plan->look_every < LOOK_EVERY_MAX) plan->look_every *= 2;
    plan->until_look = plan->look_every;
    plan->looked_ns = now;
    return plan->overdue = now > plan->deadline_ns;
}

/* Gaps of random length, because a fixed gap could always select the same operators. A timed tuple
 * counts for as many tuples as a gap has on average. */
void plan_draw_timing(xs_plan *plan)
{
    bool due = plan->until_timed < 0;
    plan_set_timing(plan, due || plan->profiled, plan->profiled || !plan->gap ? 1 : plan->gap);
    if (!due) return;
    bool fast = plan->look_every == LOOK_EVERY_MAX;
    int rare = plan->look_every == 1 ? 3 : plan->many ? 10 : fast ? 8 : 6;
    plan->gap = (int64_t)1 << rare;
    plan->random = plan->random * 6364136223846793005u + 1442695040888963407u;
    plan->until_timed = (int64_t)(plan->random >> (63 - rare)); /* 0 to twice the gap, less one */
}

void xs_plan_stop(xs_plan *plan)
{
    atomic_store_explicit(&plan->stop, 1, memory_order_relaxed);
    for (int32_t i = 0; i < plan->parts - 1; i++) xs_plan_stop(plan->later[i]);
}

int32_t xs_plan_stopped(const xs_plan *plan)
{
    return atomic_load_explicit(&((xs_plan *)plan)->stop, memory_order_relaxed);
}

/* Of several failures the one in the last part: earlier parts may have processed tuples that one thread
 * would not have reached. */
void xs_plan_failure(xs_plan *plan, xs_failure *out)
{
    for (int32_t i = plan->parts - 2; i >= 0; i--)
        if (plan->later[i]->failed_op) {
            xs_plan_failure(plan->later[i], out);
            return;
        }
    xs_op *op = plan->failed_op;
    bool on_tuple = op && plan->failed_port >= 0;
    xs_op *stood_for = op;
    while (stood_for && stood_for->original) stood_for = stood_for->original;
    *out = (xs_failure){stood_for, op, plan->failed_port,
                        on_tuple ? plan->failed_fields : 0, plan->failed_tuple,
                        plan->out_of_memory, plan->message};
}

int64_t xs_plan_queue_bytes_peak(xs_plan *plan)
{
    int64_t bytes = counter_get(&plan->queue_bytes_peak);
    for (int32_t i = 0; i < plan->parts - 1; i++)
        bytes += counter_get(&plan->later[i]->queue_bytes_peak);
    return bytes;
}
