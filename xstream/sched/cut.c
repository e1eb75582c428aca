/* Cutting a plan into parts that several threads run.
 *
 * A part and all parts before it contain, with each operator, those that feed it; a ring leads from
 * each part to the next. A part passes tuples on in the order in which one thread would process them,
 * depth first, and the next part takes them in that order; tuples for later parts are relayed. Every
 * operator therefore sees its tuples in the order of one thread, also where streams are merged.
 *
 * Each source's operators are cut at the same share of their work, so that every tuple admitted gives
 * all threads something to do. If a source feeds equal branches, such as the copies of Linear Road or
 * the replicas of a partition, each part gets some of the branches.
 */
#include "cut.h"

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

bool may_clone(const xs_plan *plan, xs_range queued, const xs_op *op)
{
    const xs_op_table *table = op->table;
    return table->clone && (!table->stateless || table->stateless(op)) && !plan->profiled &&
           (op->place < queued.low || op->place > queued.high);
}

/* The cost of an operator: its busy time, a little for each tuple passed, and a minimum per operator. A
 * source opens its file and reads rows for many tuples with one of its first ones; so the quickest counts. */
static double work(const xs_op *op)
{
    enum { PASS_NS = 5 };
    if (op->within) return 0;
    if (op->least_ns) return 1.0 + (double)((op->least_ns + PASS_NS) * op->tuples);
    return 1.0 + (double)(op_steady_ns(op) + PASS_NS * op->tuples);
}

/* -- choosing the parts -------------------------------------------------------------------- */

/* The operators whose tuples all come from one source, or those with tuples of several. */
typedef struct {
    double total, done;
    int32_t last;  /* place of the last operator that an earlier part gets */
    int32_t least; /* at least this one, because another cut was just before it */
    int32_t ops, idle; /* operators, and those of them that have seen no tuple so far */
    bool full;
} xs_group;

typedef struct {
    const xs_plan *plan;
    xs_range queued;
    int32_t *group_of; /* by place */
    xs_group *group;   /* by the place of the source; behind them, that of several sources */
    bool *early;       /* by place: before the cut that is being tried */
    int32_t count;     /* of those */
    int32_t *part;     /* by place */
    double total;
} xs_cutting;

enum { UNKNOWN = -1 };

/* The work of the operator at a place. Where most operators of a group have seen no tuple yet, the busy
 * times of the others say nothing about how to divide it. */
static double work_at(const xs_cutting *cut, int32_t i)
{
    const xs_group *group = &cut->group[cut->group_of[i]];
    const xs_op *op = cut->plan->order[i];
    return 2 * group->idle > group->ops && !op->within ? 1.0 : work(op);
}

/* Every edge that a tuple may take without being queued leads to a later place. */
static void find_groups(xs_cutting *cut)
{
    const xs_plan *plan = cut->plan;
    int32_t several = plan->ops, *of = cut->group_of;
    bool together = cut->queued.high >= 0; /* one stretch of the order, around what is queued */
    for (int32_t i = 0; i < plan->ops; i++) of[i] = together ? 0 : UNKNOWN;
    for (int32_t g = 0; g <= plan->ops; g++) cut->group[g].least = UNKNOWN;
    for (int32_t i = 0; i < plan->ops; i++) {
        const xs_op *op = plan->order[i];
        if (of[i] == UNKNOWN) of[i] = i;
        for (int32_t port = 0; port < op->outs && !together; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) {
                int32_t to = op->out[port].edge[e].to->place;
                of[to] = of[to] == UNKNOWN || of[to] == of[i] ? of[i] : several;
            }
        if (op->within) continue;
        cut->group[of[i]].ops++;
        cut->group[of[i]].idle += !op->tuples;
    }
    for (int32_t i = 0; i < plan->ops; i++) {
        cut->group[of[i]].total += work_at(cut, i);
        cut->total += work_at(cut, i);
    }
}

/* No part may begin among what is queued. */
static int32_t outside_queued(const xs_cutting *cut, int32_t last)
{
    xs_range queued = cut->queued;
    int32_t entries = cut->plan->entries;
    if (last < entries - 1) last = entries - 1;
    if (last < queued.low || last >= queued.high) return last;
    bool before = queued.low >= entries && last - queued.low < queued.high - last;
    return before ? queued.low - 1 : queued.high;
}

/* The last place of each group that belongs before a cut at a share of its work. The operator there
 * is on its better side. Operators at the end that can be cloned are left behind the cut: the more
 * work both sides can do, the less a wrong estimate matters. */
static void fill_groups(xs_cutting *cut, double share)
{
    const xs_plan *plan = cut->plan;
    for (int32_t g = 0; g <= plan->ops; g++) {
        cut->group[g].done = 0;
        cut->group[g].last = cut->group[g].least;
        cut->group[g].full = false;
    }
    for (int32_t i = 0; i < plan->ops; i++) {
        xs_group *group = &cut->group[cut->group_of[i]];
        if (group->full) continue;
        const xs_op *op = plan->order[i];
        double aim = share * group->total, after = group->done + work_at(cut, i);
        bool clonable = may_clone(plan, cut->queued, op);
        group->full = after > aim;
        if (group->full && (clonable || after - aim > aim - group->done)) continue;
        group->done = after;
        if (!clonable && group->last < i) group->last = i;
    }
    cut->group[0].last = outside_queued(cut, cut->group[0].last);
}

/* Marks what lies before a cut at a share of the work of each group, and returns the work of that. */
static double try_share(xs_cutting *cut, double share)
{
    const xs_plan *plan = cut->plan;
    double before = 0;
    fill_groups(cut, share);
    cut->count = 0;
    for (int32_t i = 0; i < plan->ops; i++) cut->early[i] = true;
    for (int32_t i = 0; i < plan->ops; i++) {
        const xs_op *op = plan->order[i];
        cut->early[i] = i < plan->entries || op->within ||
                        (cut->early[i] && i <= cut->group[cut->group_of[i]].last);
        if (cut->early[i]) before += work_at(cut, i), cut->count++;
        for (int32_t port = 0; port < op->outs && !cut->early[i]; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) {
                int32_t to = op->out[port].edge[e].to->place;
                if (to > i) cut->early[to] = false;
            }
    }
    return before;
}

/* The share of each group's work that is nearest to a given amount of work, without all of it. */
static double share_for(xs_cutting *cut, double aim)
{
    enum { STEPS = 24 };
    double low = 0, high = 1, best = 0, nearest = cut->total;
    for (int step = 0; step < STEPS; step++) {
        double share = (low + high) / 2, found = try_share(cut, share);
        double off = found < aim ? aim - found : found - aim;
        if (off < nearest && cut->count < cut->plan->ops) nearest = off, best = share;
        if (found < aim) low = share;
        else high = share;
    }
    return best;
}

/* Fills `part`; returns the number of parts, none of which is empty. */
static int32_t divide(xs_cutting *cut, int32_t parts)
{
    int32_t ops = cut->plan->ops, found = 1, before = 0;
    for (int32_t wanted = 1; wanted < parts; wanted++) {
        try_share(cut, share_for(cut, cut->total * wanted / parts));
        if (cut->count == ops || (found > 1 && cut->count == before)) continue;
        before = cut->count;
        for (int32_t i = ops - 1; i >= 0; i--) {
            if (cut->early[i]) continue;
            cut->part[i] = found;
            cut->group[cut->group_of[i]].least = i;
        }
        found++;
    }
    for (int32_t i = 0; i < ops; i++)
        if (cut->plan->order[i]->within) cut->part[i] = cut->part[cut->plan->order[i]->within->place];
    return found;
}

/* Returns the part of each operator by place, and their number in `found`; NULL without memory. */
static int32_t *choose_parts(const xs_plan *plan, xs_range queued, int32_t parts, int32_t *found)
{
    size_t ops = (size_t)plan->ops + 1;
    xs_cutting cut = {.plan = plan, .queued = queued,
                      .group_of = malloc(ops * sizeof *cut.group_of),
                      .group = calloc(ops, sizeof *cut.group),
                      .early = malloc(ops * sizeof *cut.early),
                      .part = calloc(ops, sizeof *cut.part)};
    bool enough = cut.group_of && cut.group && cut.early && cut.part;
    if (enough) {
        find_groups(&cut);
        *found = divide(&cut, parts);
    }
    free(cut.group_of);
    free(cut.group);
    free(cut.early);
    if (enough) return cut.part;
    free(cut.part);
    return NULL;
}

int32_t xs_plan_cut(xs_plan *plan, int32_t parts)
{
    if (!plan->scheduler->direct || plan->parts > 1) return 1;
    int32_t found = 1;
    xs_range queued = queued_range(plan);
    int32_t *part_of = choose_parts(plan, queued, parts, &found);
    bool made = part_of && (found == 1 || parts_make(plan, queued, part_of, found));
    free(part_of);
    return made ? found : -1;
}

xs_plan *xs_plan_part(xs_plan *plan, int32_t part) { return part ? plan->later[part - 1] : plan; }

int32_t xs_op_part(const xs_op *op) { return op->plan->part; }

void xs_plan_give_up(xs_plan *plan)
{
    for (int32_t p = 0; p < plan->parts - 1; p++) ring_abandon(xs_plan_part(plan, p)->ring_out);
}
