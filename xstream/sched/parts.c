/* Making the parts of a plan that was cut: operators, clones, and the edges between them.
 *
 * Operators without state after a cut are cloned before it: while the next part has enough to do, the
 * clones process tuples before they are passed on. This balances loads that a cut between operators
 * cannot. An operator that divides segments into many tuples, such as rewindow, is halved there: it
 * only keeps the state, and its half makes the tuples, on the thread that processes them.
 */
#include "cut.h"

static xs_plan *part_new(xs_plan *plan, int32_t part, xs_plan *before)
{
    xs_plan *one = xs_plan_new(plan->manager);
    if (!one) return NULL;
    one->part = part;
    one->parts = 1;
    one->scheduler = plan->scheduler;
    one->tuple_burst = 1; /* only the first part admits bursts */
    one->admitting = true;
    one->nap_ns = NAP_NS;
    one->profiled = plan->profiled;
    one->live = plan->live;
    one->patient = plan->patient;
    plan_set_timing(one, one->profiled, 1);
    before->ring_out = one->ring_in = ring_new(before);
    if (one->ring_in) return one;
    xs_plan_free(one);
    return NULL;
}

/* An operator that does in `part` what `op` does in its own; the edges are set later. */
static bool clone_into(xs_plan *part, xs_op *op)
{
    int32_t own = op->plan->part;
    if (!op->clone) op->clone = calloc((size_t)own, sizeof *op->clone);
    xs_op *clone = op->clone ? op->table->clone(op, part) : NULL;
    if (!clone) return false;
    op->clones = own;
    clone->original = op;
    clone->place = op->place;
    clone->out = calloc((size_t)op->outs + 1, sizeof *clone->out);
    if (!clone->out || xs_plan_shape_in(clone, op->ins, op->in_shape)) return false;
    clone->outs = op->outs;
    for (int32_t port = 0; port < op->outs; port++) {
        const xs_out *out = &op->out[port];
        clone->out[port].shape = out->shape;
        for (int32_t e = 0; e < out->edges; e++)
            if (xs_plan_connect(clone, port, out->edge[e].to, out->edge[e].port)) return false;
    }
    op->clone[part->part] = clone;
    return true;
}

static void mark_fed(const xs_op *op, bool *fed)
{
    for (int32_t port = 0; port < op->outs; port++)
        for (int32_t e = 0; e < op->out[port].edges; e++) fed[op->out[port].edge[e].to->place] = true;
}

/* Clones the operators that can be reached from this and earlier parts through clones alone. In the
 * order of a plan that was cut, every operator still stands after those that feed it. */
static bool clone_behind(xs_plan *plan, xs_plan *part, xs_range queued, int32_t ops)
{
    bool *fed = calloc((size_t)ops, sizeof *fed), cloned = fed != NULL;
    for (int32_t i = 0; cloned && i < ops; i++) {
        xs_op *op = plan->order[i];
        bool behind = op->plan->part > part->part;
        if (behind && !(fed[op->place] && may_clone(plan, queued, op))) continue;
        if (behind) cloned = clone_into(part, op);
        mark_fed(op, fed);
    }
    free(fed);
    return cloned;
}

/* The later part that all edges of an operator lead to; NULL if there is none. */
static xs_plan *only_target(const xs_op *op)
{
    const xs_out *out = &op->out[0];
    xs_plan *target = out->edges ? out->edge->to->plan : NULL;
    for (int32_t e = 1; e < out->edges; e++)
        if (out->edge[e].to->plan != target) return NULL;
    return target && target->part > op->plan->part ? target : NULL;
}

/* Clones of a half in the parts before its own, wherever a clone behind it can use what it makes. */
static bool clone_half(xs_plan *plan, xs_op *half, int32_t first)
{
    const xs_out *out = &half->out[0];
    for (int32_t p = first; p < half->plan->part; p++) {
        bool used = false;
        for (int32_t e = 0; e < out->edges; e++) {
            xs_op **clone = out->edge[e].to->clone;
            used |= clone && clone[p];
        }
        if (used && !clone_into(xs_plan_part(plan, p), half)) return false;
    }
    return true;
}

/* The half takes over the operator's edges. */
static bool halve(xs_plan *plan, xs_op *op, xs_plan *target)
{
    xs_op *half = op->half = op->table->halve(op, target);
    xs_out *outs = half ? calloc(1, sizeof *outs) : NULL;
    if (!outs || xs_plan_shape_in(half, 1, &order_shape)) {
        free(outs);
        return false;
    }
    half->original = op;
    half->place = op->place;
    half->outs = 1;
    half->out = outs;
    *outs = op->out[0];
    op->out[0] = (xs_out){.shape = order_shape};
    return !xs_plan_connect(op, 0, half, 0) && clone_half(plan, half, op->plan->part);
}

static bool halve_all(xs_plan *plan, int32_t ops)
{
    for (int32_t i = 0; i < ops; i++) {
        xs_op *op = plan->order[i];
        xs_plan *target = op->table->halve && !plan->copies ? only_target(op) : NULL;
        if (target && !halve(plan, op, target)) return false;
    }
    return true;
}

/* What clones of an operator and of those behind it need for a tuple, by the busy times so far. An
 * operator with several outputs emits each tuple on one of them. */
static void estimate(xs_op *op)
{
    enum { LEAST_NS = 20 };
    double behind = 0, tuples = (double)(op->tuples + 1), each = 1, own = 0;
    for (int32_t port = 0; port < op->outs; port++)
        for (int32_t e = 0; e < op->out[port].edges; e++)
            behind += (double)op->out[port].edge[e].to->clone_ns / op->outs;
    bool half = op->original != NULL;
    if (!half) each = (double)(op->emitted + 1) / tuples;
    if (!half && op->timed_tuples > 1) own = (double)op_steady_ns(op) / tuples;
    op->clone_ns = LEAST_NS + (int64_t)(own + behind * each);
}

static void estimate_all(xs_plan *plan, int32_t ops)
{
    for (int32_t i = ops - 1; i >= 0; i--) {
        xs_op *op = plan->order[i];
        if (op->clone) estimate(op);
        if (op->half) estimate(op->half);
    }
}

/* Edges to other parts go through the ring; those from clones to clones are called directly. */
static void wire(xs_op *op, xs_plan *part)
{
    for (int32_t port = 0; port < op->outs; port++)
        for (int32_t e = 0; e < op->out[port].edges; e++) {
            xs_edge *edge = &op->out[port].edge[e];
            if (edge->to->plan == part) continue;
            xs_op *clone = op->original && edge->to->clone ? edge->to->clone[part->part] : NULL;
            edge->direct = clone != NULL;
            edge->ring = clone ? NULL : part->ring_out;
            if (!clone) continue;
            edge->to = clone;
            edge->queue = &clone->in[edge->port];
        }
    op_find_only(op);
}

/* Edges of one port to the same part, `count` of them in a row, become a fan. */
static bool make_fan(xs_out *out, int32_t first, int32_t count)
{
    xs_edge *edge = &out->edge[first];
    xs_fan *fan = malloc(sizeof *fan + (size_t)count * sizeof *fan->edge);
    if (!fan) return false;
    *fan = (xs_fan){.part = edge->to->plan, .shape = out->shape, .edges = count};
    for (int32_t i = 0; i < count; i++) {
        fan->edge[i] = (xs_edge){.to = edge[i].to, .queue = edge[i].queue, .port = edge[i].port,
                                 .direct = true};
        edge[i].carried = i > 0;
    }
    edge->fan = fan;
    return true;
}

/* Passing a tuple once costs less than passing it to each of several operators. With few of them,
 * their stand-ins are worth more. Under copy-always, passing is what copies. */
static bool make_fans(xs_op *op)
{
    enum { LEAST = 4 };
    for (int32_t port = 0; port < op->outs && !op->plan->copies; port++) {
        xs_out *out = &op->out[port];
        for (int32_t first = 0, end; first < out->edges; first = end) {
            const xs_edge *edge = &out->edge[first];
            for (end = first + 1; end < out->edges && edge->ring; end++)
                if (!out->edge[end].ring || out->edge[end].to->plan != edge->to->plan) break;
            if (end - first >= LEAST && !make_fan(out, first, end - first)) return false;
        }
    }
    return true;
}

static bool add_parts(xs_plan *plan, int32_t parts)
{
    plan->later = calloc((size_t)parts, sizeof *plan->later);
    if (!plan->later) return false;
    for (xs_plan *before = plan; plan->parts < parts; plan->parts++) {
        xs_plan *part = part_new(plan, plan->parts, before);
        if (!part) return false;
        before = plan->later[plan->parts - 1] = part;
    }
    return true;
}

/* Sorts the operators by part; the order within a part, and each operator's place, remain. */
static bool assign(xs_plan *plan, const int32_t *part_of)
{
    xs_op **order = malloc(((size_t)plan->ops + 1) * sizeof *order);
    if (!order) return false;
    for (int32_t p = 0, placed = 0; p < plan->parts; p++) {
        xs_plan *part = xs_plan_part(plan, p);
        int32_t begin = placed;
        for (int32_t i = 0; i < plan->ops; i++) {
            if (part_of[i] != p) continue;
            order[placed++] = plan->order[i];
            plan->order[i]->plan = part;
        }
        if (p) part->order = order + begin;
        part->ordered = placed - begin;
    }
    free(plan->order);
    plan->order = order;
    return true;
}

/* Clones, edges and fans. */
static bool connect_parts(xs_plan *plan, xs_range queued, int32_t ops)
{
    for (int32_t p = 0; p < plan->parts - 1; p++)
        if (!clone_behind(plan, xs_plan_part(plan, p), queued, ops)) return false;
    if (!plan->profiled && !halve_all(plan, ops)) return false;
    estimate_all(plan, ops);
    for (int32_t i = 0; i < ops; i++) wire(plan->op[i], plan->op[i]->plan);
    for (int32_t p = 0; p < plan->parts; p++) {
        xs_plan *part = xs_plan_part(plan, p);
        for (int32_t i = p ? 0 : ops; i < part->ops; i++) wire(part->op[i], part);
    }
    for (int32_t i = 0; i < ops; i++)
        if (!make_fans(plan->op[i])) return false;
    return true;
}

bool parts_make(xs_plan *plan, xs_range queued, const int32_t *part_of, int32_t parts)
{
    int32_t ops = plan->ops; /* without clones */
    return add_parts(plan, parts) && assign(plan, part_of) && connect_parts(plan, queued, ops);
}
