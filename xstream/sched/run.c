/* The loop that runs a prepared plan: rate control around a scheduler. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <pthread.h>
#include <time.h>

#include "schedulers.h"

enum {
    LONG_NAP_NS = 1000000, /* the longest sleep while waiting for other threads */
    NEST_BYTES = 4 << 20, /* of stack for direct calls; half of the stack if it is small */
};

/* The stack limit for direct calls in this thread; the rest is for functions that operators call. */
static uintptr_t stack_floor(void)
{
    static _Thread_local uintptr_t end;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
#ifdef __linux__
    pthread_attr_t attributes;
    if (!end && !pthread_getattr_np(pthread_self(), &attributes)) {
        void *lowest;
        size_t size;
        if (!pthread_attr_getstack(&attributes, &lowest, &size)) end = (uintptr_t)lowest;
        pthread_attr_destroy(&attributes);
    }
#endif
    uintptr_t room = end && end < here ? (here - end) / 2 : NEST_BYTES / 32;
    return here - (room < NEST_BYTES ? room : NEST_BYTES);
}

/* The number of tuples a source may emit at once: up to the next timed one and the end of the burst. */
static int64_t at_once(const xs_op *source, int64_t burst)
{
    const xs_plan *plan = source->plan;
    if (!source->table->produce_many || plan->timed) return 1;
    int64_t most = plan->until_timed < MANY ? plan->until_timed : MANY;
    return burst && burst - plan->admitted < most ? burst - plan->admitted : most;
}

/* Admits at most `burst` tuples of one source, or all available ones within the budget. A burst that
 * the budget interrupts continues when the plan next runs, so that related streams stay in step. */
static int32_t admit_from(xs_op *source, int64_t burst)
{
    xs_plan *plan = source->plan;
    for (bool first = true; !burst || plan->admitted < burst; plan->admitted++, first = false) {
        if (!first && plan_overdue(plan)) {
            plan->cut_short = burst != 0;
            return XS_OK;
        }
        if (atomic_load_explicit(&plan->stop, memory_order_relaxed)) return XS_END;
        plan_sample_timing(plan);
        if (unlikely(source->tuples < FIRST_TIMED) && !plan->timed) plan_set_timing(plan, true, 1);
        int64_t most = at_once(source, burst);
        if (most > 1) {
            int64_t made = 0;
            int32_t ended = source->table->produce_many(source, most, &made);
            counter_add(&source->tuples, made);
            if (ended) return ended;
            plan->many = true;
            plan->until_timed -= made - 1;
            plan->admitted += made - 1;
            continue;
        }
        xs_cost_mark mark;
        if (plan->profiled) cost_enter(plan, &mark);
        int64_t begin = plan->timed ? engine_now_ns() : 0;
        plan->child_ns = 0;
        int32_t status = source->table->produce(source);
        if (plan->timed) {
            int64_t own_ns = engine_now_ns() - begin - plan->child_ns;
            if (unlikely(!source->timed_tuples) && plan->weight == 1) source->first_ns = own_ns;
            if (!source->least_ns || own_ns < source->least_ns) source->least_ns = own_ns;
            counter_add(&source->busy_ns, plan->weight * own_ns);
            counter_add(&source->timed_tuples, plan->weight);
        }
        if (plan->profiled) cost_leave(source, &mark);
        if (status) return status;
        counter_add(&source->tuples, 1);
    }
    return XS_OK;
}

/* XS_OK: some source has more; XS_WAIT: all sources that have more are waiting; XS_END: none has more. */
static int32_t admit(xs_plan *plan)
{
    int32_t overall = plan->cut_short ? plan->admit_overall : XS_END;
    int32_t first = plan->cut_short ? plan->admit_source : 0;
    if (!plan->cut_short) plan->admitted = 0, plan->moved = false;
    plan->cut_short = false;
    for (int32_t i = first; i < plan->sources; i++, plan->admitted = 0) {
        xs_op *op = plan->source[i];
        if (op->ended) continue;
        int32_t status = admit_from(op, plan->tuple_burst);
        if (plan->admitted) plan->moved = true;
        if (plan->cut_short) {
            plan->admit_source = i;
            plan->admit_overall = overall;
            return XS_OK;
        }
        if (status == XS_FAILED) {
            if (!plan->failed_op) plan->failed_op = op, plan->failed_port = -1;
            return status;
        }
        if (status == XS_END) op->ended = true;
        else if (status == XS_OK || overall == XS_END) overall = status;
        if (plan->tuple_burst && i + 1 < plan->sources && plan_overdue(plan)) {
            plan->cut_short = true; /* the other sources are next */
            plan->admit_source = i + 1;
            plan->admit_overall = overall;
            plan->admitted = 0;
            return XS_OK;
        }
    }
    return overall;
}

/* A tuple from the previous part that is for several operators, all of this part or of a later one. */
static int32_t take_fan(xs_plan *plan, xs_fan *fan, xs_slot *tuple)
{
    if (fan->part != plan) {
        ring_pass_fan_owned(plan->ring_out, fan, tuple);
        return XS_OK;
    }
    int32_t status = XS_OK;
    plan_sample_timing(plan);
    for (int32_t i = 0; i < fan->edges && likely(!status); i++) {
        plan->given = i + 1 == fan->edges ? tuple : NULL;
        status = pass(&fan->edge[i], tuple, &fan->shape);
    }
    plan->given = NULL;
    tuple_drop(tuple, fan->shape.segments);
    return status;
}

/* A tuple from the previous part: for an operator of this part, or of a later one. */
static int32_t take_tuple(xs_plan *plan, xs_queue *to, xs_slot *tuple)
{
    xs_op *op = to->op;
    if (op->plan != plan) {
        const xs_edge onwards = {.to = op, .queue = to, .port = to->port, .ring = plan->ring_out};
        xs_op *here = ring_stand_in(&onwards, tuple);
        if (here) return queue_run_owned(&here->in[to->port], tuple);
        ring_pass_owned(plan->ring_out, to, tuple);
        return XS_OK;
    }
    if (unlikely(plan->spilled && to->length)) return queue_push_owned(to, tuple);
    return queue_run_owned(to, tuple);
}

/* For the segments of a tuple from the previous part. */
static int32_t no_memory(xs_plan *plan, xs_op *op)
{
    plan_out_of_memory(plan);
    if (!plan->failed_op) plan->failed_op = op, plan->failed_port = -1;
    return XS_FAILED;
}

/* The counterpart of admit for a part that another one feeds: takes one burst. */
static int32_t take_burst(xs_plan *plan)
{
    xs_slot tuple[MAX_FIELDS];
    xs_ring_to to;
    plan->cut_short = false;
    for (int32_t status = XS_OK;;) {
        switch (ring_take(plan->ring_in, &to, tuple, plan->deadline_ns)) {
        case RING_TUPLE: status = take_tuple(plan, to.queue, tuple); break;
        case RING_FAN: status = take_fan(plan, to.fan, tuple); break;
        case RING_FINISH: plan->finish_below = (int32_t)tuple[0].i; return XS_OK;
        case RING_BURST: plan->arrived = (xs_under_way *)(intptr_t)tuple[0].i; return XS_OK;
        case RING_END: return XS_END;
        case RING_FAILED: plan->cut_off = true; return XS_END;
        case RING_SETTLE: plan->settle = true; return XS_OK;
        case RING_EMPTY: plan->cut_short = true; return XS_OK;
        case RING_NO_MEMORY: return no_memory(plan, to.queue->op);
        }
        if (status) return status;
        if (plan_overdue(plan)) {
            plan->cut_short = true;
            return XS_OK;
        }
    }
}

/* Whether one thread would now finish operators of this part, although tuples for it may follow. */
static bool must_finish(const xs_plan *plan)
{
    return plan->finished < plan->ordered && plan->order[plan->finished]->place < plan->finish_below;
}

/* Later parts have operators before the one that an earlier part is about to finish. */
static void finish_later_parts(xs_plan *plan, int32_t place)
{
    if (!plan->ring_out || place <= plan->finish_told) return;
    plan->finish_told = place;
    ring_mark_finish(plan->ring_out, place);
}

/* Notifies the next operator that its streams have ended. */
static int32_t finish_next(xs_plan *plan)
{
    xs_op *op = plan->order[plan->finished++];
    if (!op->table->finish || atomic_load_explicit(&plan->stop, memory_order_relaxed)) return XS_OK;
    finish_later_parts(plan, op->place);
    xs_cost_mark mark;
    if (plan->profiled) cost_enter(plan, &mark);
    int32_t status = op->table->finish(op);
    if (plan->profiled) cost_leave(op, &mark);
    if (status && !plan->failed_op) plan->failed_op = op, plan->failed_port = -1;
    return status;
}

static int32_t drain(xs_plan *plan)
{
    for (;;) {
        int32_t status = plan->scheduler->step(plan);
        if (status == XS_END) plan->spilled = false;
        if (status) return status;
        if (plan_overdue(plan)) return XS_OK;
    }
}

/* Ends a part and notifies the next one. */
static int32_t ended(xs_plan *plan)
{
    if (plan->ring_out) ring_mark(plan->ring_out, plan->cut_off ? RING_FAILED : RING_END);
    return XS_END;
}

/* Earlier parts may stop. Later parts run to the point of this failure, because one of their operators
 * may fail on an earlier tuple. */
static int32_t failed(xs_plan *plan)
{
    if (plan->ring_in) ring_abandon(plan->ring_in);
    if (plan->ring_out) ring_mark(plan->ring_out, RING_FAILED);
    return XS_FAILED;
}

/* No tuple is in flight in this part. The next part is notified, and woken if this one is about to
 * sleep; the last part thereby knows that the burst is complete. */
static void burst_done(xs_plan *plan)
{
    if (!plan->ring_in && plan->ring_out) plan->arrived = plan->live ? arrivals_take(plan) : NULL;
    if (plan->ring_out) ring_mark_burst(plan->ring_out, plan->arrived);
    else if (plan->ring_in) arrivals_settle_taken(plan->arrived);
    else if (plan->live) arrivals_settle(plan);
    plan->arrived = NULL;
    if (plan->ring_out && plan->waiting) ring_wake(plan->ring_out);
}

/* Whether the plan can settle within a burst: nothing is queued that the burst's end would process. */
static bool may_settle(const xs_plan *plan)
{
    return plan->settle_early && plan->tuple_burst && !plan->ready_op_head && !plan->ready_queue_head;
}

static int32_t run(xs_plan *plan, int64_t budget_ns)
{
    plan->looked_ns = engine_now_ns();
    plan->deadline_ns = plan->looked_ns + budget_ns;
    plan->until_look = plan->look_every = 1;
    plan->overdue = false;
    plan->stack_floor = stack_floor();
    do {
        int32_t status;
        if (plan->admitting && !plan->sources_ended && !must_finish(plan)) {
            finish_later_parts(plan, plan->finish_below);
            status = plan->ring_in ? take_burst(plan) : admit(plan);
            if (status == XS_FAILED) return status;
            plan->sources_ended = status == XS_END;
            plan->waiting = status == XS_WAIT;
            if (!plan->waiting || plan->moved) plan->nap_ns = NAP_NS;
            plan->admitting = plan->cut_short ||
                              (!plan->tuple_burst && status == XS_OK); /* more tuples have arrived */
            if (plan->admitting && !may_settle(plan)) continue;
        }
        status = drain(plan);
        if (status == XS_FAILED) return status;
        if (status == XS_OK) continue; /* not empty yet, but the budget is used up */
        burst_done(plan);
        plan->admitting = true;
        if (plan->sources_ended || must_finish(plan)) {
            if (plan->finished == plan->ordered || plan->cut_off) return ended(plan);
            status = finish_next(plan);
            if (status) return status;
            continue;
        }
        if (plan->settle) {
            plan->settle = plan->settle_early = false;
            if (plan->ring_out) ring_mark(plan->ring_out, RING_SETTLE);
            return XS_SETTLED;
        }
        /* After a burst with tuples, sources are asked again first: some wait by themselves. */
        if (plan->waiting && !plan->moved) {
            if (engine_now_ns() + plan->nap_ns > plan->deadline_ns) return XS_WAIT;
            nanosleep(&(struct timespec){.tv_nsec = plan->nap_ns}, NULL);
            if (plan->patient && plan->nap_ns < LONG_NAP_NS) plan->nap_ns *= 2;
        }
    } while (!plan_overdue(plan));
    return XS_OK;
}

int32_t xs_plan_run(xs_plan *plan, int64_t budget_ns)
{
    xs_own_tally before = tally_take(plan->manager);
    int32_t status = run(plan, budget_ns);
    tally_return(before);
    return status == XS_FAILED ? failed(plan) : status;
}

int32_t xs_plan_is_measured(const xs_plan *plan)
{
    enum { FEW = 3 };
    for (int32_t i = 0; i < plan->sources; i++)
        if (!plan->source[i]->ended && plan->source[i]->tuples < FEW) return 0;
    return 1;
}

void xs_plan_settle(xs_plan *plan) { plan->settle = true; }

void xs_plan_settle_early(xs_plan *plan) { plan->settle = plan->settle_early = true; }
