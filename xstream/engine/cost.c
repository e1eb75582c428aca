/* Profiled runs: the costs that each operator causes in the memory manager. */
#include "engine.h"

enum { COUNTERS = sizeof(xs_cost) / sizeof(int64_t) };

/* A cost consists of counters, which are all added and subtracted in the same way. Two threads may
 * charge the same operator: the one that runs it and the one that passes tuples to it. */
static void cost_add(xs_cost *to, const xs_cost *from, int64_t sign)
{
    int64_t *a = (int64_t *)to;
    const int64_t *b = (const int64_t *)from;
    for (int i = 0; i < COUNTERS; i++) __atomic_fetch_add(&a[i], sign * b[i], __ATOMIC_RELAXED);
}

/* The costs of this thread so far. */
static xs_cost cost_now(const xs_plan *plan)
{
    xs_tally *tally = tally_of(plan->manager);
    xs_cost now = {.allocations = count_get(&tally->allocations),
                   .reallocations = count_get(&tally->reallocations),
                   .moved_reallocations = count_get(&tally->moved_reallocations),
                   .manager_ns = profile_ticks(plan->manager)}; /* converted to ns when it is read */
    for (int why = 0; why < XS_REASONS; why++)
        now.bytes_copied[why] = count_get(&tally->bytes_copied[why]);
    return now;
}

void cost_enter(xs_plan *plan, xs_cost_mark *mark)
{
    mark->begin_ns = engine_now_ns();
    mark->outer_child_ns = plan->child_ns;
    mark->outer_child = plan->child_cost;
    plan->child_cost = (xs_cost){0};
    mark->before = cost_now(plan);
}

void cost_leave(xs_op *op, const xs_cost_mark *mark) { cost_charge(op->plan, op, mark); }

void cost_charge(xs_plan *plan, xs_op *op, const xs_cost_mark *mark)
{
    xs_cost spent = cost_now(plan);
    cost_add(&spent, &mark->before, -1);
    cost_add(op->cost, &spent, 1);
    cost_add(op->cost, &plan->child_cost, -1);
    plan->child_cost = mark->outer_child;
    cost_add(&plan->child_cost, &spent, 1);
    /* The caller is charged neither the operator's time nor the time for counting its costs. */
    plan->child_ns = mark->outer_child_ns + engine_now_ns() - mark->begin_ns;
}

int32_t xs_plan_profile(xs_plan *plan)
{
    for (int32_t i = 0; i < plan->ops; i++) {
        plan->op[i]->cost = calloc(1, sizeof(xs_cost));
        if (!plan->op[i]->cost) return XS_FAILED;
    }
    xs_manager_profile(plan->manager);
    plan->profiled = true;
    return XS_OK;
}

void xs_op_cost_read(xs_op *op, xs_cost *out)
{
    *out = op->cost ? *op->cost : (xs_cost){0};
    out->manager_ns = profile_ns(op->plan->manager, out->manager_ns);
}
