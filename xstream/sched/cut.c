/* Cutting a plan into parts that several threads run.
 *
 * The parts are consecutive stretches of the plan's topological order, with one ring from each to the
 * next. A part passes tuples on in the order in which one thread would process them, depth first, and the
 * next part takes them in that order; tuples for later parts are relayed. Every operator therefore
 * sees its tuples in the order of one thread, also where streams are merged.
 *
 * Operators without state after a cut are cloned before it: while the next part has enough to do, the
 * clones process tuples before they are passed on. This balances loads that a cut between operators
 * cannot.
 */
#include "schedulers.h"

/* Places in the order, `low` < place <= `high`, where no part may begin. */
typedef struct {
    int32_t low, high;
} xs_range;

/* Queued tuples, in cycles or from sources without rate control, are processed in an order that a single
 * part must decide. */
static xs_range queued_range(const xs_plan *plan)
{
    xs_range range = {plan->ops, -1};
    for (int32_t i = 0; i < plan->ops; i++) {
        const xs_op *op = plan->op[i];
        for (int32_t port = 0; port < op->outs; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) {
                const xs_edge *edge = &op->out[port].edge[e];
                if (edge->direct) continue;
                int32_t first = edge->to->place, last = op->place;
                if (first > last) first = op->place, last = edge->to->place;
                if (first < range.low) range.low = first;
                if (last > range.high) range.high = last;
            }
    }
    return range;
}

static bool inside(xs_range range, int32_t place) { return range.low < place && place <= range.high; }

static bool may_begin(const xs_plan *plan, xs_range queued, int32_t place)
{
    return place >= plan->entries && place < plan->ops && !inside(queued, place);
}

static bool may_clone(const xs_plan *plan, xs_range queued, const xs_op *op)
{
    const xs_op_table *table = op->table;
    return table->clone && (!table->stateless || table->stateless(op)) && !plan->profiled &&
           (op->place < queued.low || op->place > queued.high);
}

/* The cost of an operator: its busy time, a little for each tuple passed, and a minimum per operator. */
static double work(const xs_op *op)
{
    enum { PASS_NS = 5 };
    return 1.0 + (double)(op_busy_ns(op) + PASS_NS * op->tuples);
}

/* The first place of a part that should begin after `before` of the work. If the operator there can
 * be cloned, the part begins before it and before all clonable operators that precede it: the more
 * work both sides can do, the less a wrong estimate matters. Otherwise the better side of it. */
static int32_t beginning(const xs_plan *plan, xs_range queued, double before, int32_t least)
{
    double done = 0;
    int32_t place = 0;
    while (place < plan->ops - 1 && done + work(plan->order[place]) <= before)
        done += work(plan->order[place++]);
    if (!may_clone(plan, queued, plan->order[place]) &&
        before - done > done + work(plan->order[place]) - before)
        place++;
    while (place > least && may_clone(plan, queued, plan->order[place - 1])) place--;
    for (int32_t away = 0; away < plan->ops; away++) { /* the nearest allowed place */
        if (place - away >= least && may_begin(plan, queued, place - away)) return place - away;
        if (place + away >= least && may_begin(plan, queued, place + away)) return place + away;
    }
    return -1;
}

/* Fills `begin`; returns the number of parts. */
static int32_t divide(const xs_plan *plan, xs_range queued, int32_t parts, int32_t *begin)
{
    double total = 0;
    for (int32_t i = 0; i < plan->ops; i++) total += work(plan->order[i]);
    int32_t found = 1;
    begin[0] = 0;
    for (int32_t part = 1; part < parts; part++) {
        int32_t place = beginning(plan, queued, total * part / parts, begin[found - 1] + 1);
        if (place > begin[found - 1]) begin[found++] = place;
    }
    begin[found] = plan->ops;
    return found;
}

/* -- making the parts ---------------------------------------------------------------------- */

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

/* Clones the operators that can be reached from this and earlier parts through clones alone. */
static bool clone_behind(xs_plan *plan, xs_plan *part, xs_range queued, int32_t ops)
{
    bool *fed = calloc((size_t)ops, sizeof *fed), cloned = fed != NULL;
    for (int32_t i = 0; cloned && i < ops; i++) {
        xs_op *op = plan->order[i];
        bool behind = op->plan->part > part->part;
        if (behind && !(fed[i] && may_clone(plan, queued, op))) continue;
        if (behind) cloned = clone_into(part, op);
        mark_fed(op, fed);
    }
    free(fed);
    return cloned;
}

/* Edges to other parts go through the ring; those between clones are called directly. */
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

static bool make_parts(xs_plan *plan, int32_t parts, const int32_t *begin)
{
    plan->later = calloc((size_t)parts, sizeof *plan->later);
    if (!plan->later) return false;
    for (xs_plan *before = plan; plan->parts < parts; plan->parts++) {
        xs_plan *part = part_new(plan, plan->parts, before);
        if (!part) return false;
        before = plan->later[plan->parts - 1] = part;
    }
    for (int32_t p = 0; p < parts; p++) {
        xs_plan *part = xs_plan_part(plan, p);
        part->order = plan->order + begin[p];
        part->ordered = begin[p + 1] - begin[p];
        for (int32_t i = 0; i < part->ordered; i++) part->order[i]->plan = part;
    }
    return true;
}

int32_t xs_plan_cut(xs_plan *plan, int32_t parts)
{
    int32_t ops = plan->ops;
    int32_t *begin = malloc(((size_t)parts + 1) * sizeof *begin);
    if (!begin) return -1;
    xs_range queued = queued_range(plan);
    int32_t found = plan->scheduler->direct && plan->parts == 1 ? divide(plan, queued, parts, begin) : 1;
    bool made = found == 1 || make_parts(plan, found, begin);
    free(begin);
    for (int32_t p = 0; made && p < found - 1; p++)
        made = clone_behind(plan, xs_plan_part(plan, p), queued, ops);
    if (!made) return -1;
    if (found == 1) return 1;
    for (int32_t i = 0; i < ops; i++) wire(plan->op[i], plan->op[i]->plan);
    for (int32_t p = 0; p < found; p++) {
        xs_plan *part = xs_plan_part(plan, p);
        for (int32_t i = p ? 0 : ops; i < part->ops; i++) wire(part->op[i], part);
    }
    return found;
}

xs_plan *xs_plan_part(xs_plan *plan, int32_t part) { return part ? plan->later[part - 1] : plan; }

int32_t xs_op_part(const xs_op *op) { return op->plan->part; }

void xs_plan_give_up(xs_plan *plan)
{
    for (int32_t p = 0; p < plan->parts - 1; p++) ring_abandon(xs_plan_part(plan, p)->ring_out);
}
