/* Running a plan: the four schedulers and rate control. */
#ifndef XS_RUN_H
#define XS_RUN_H
#include "../engine/plan.h"

typedef enum { XS_FIFO, XS_FIFO_SLICE, XS_RTC, XS_DF } xs_scheduler_kind;

/* Call after the last edge was added: decides which edges are called directly and which queue.
 * tuple_burst 0: no rate control. */
int32_t xs_plan_prepare(xs_plan *plan, int32_t scheduler, int64_t tuple_burst, int64_t slice_ns);

/* The next run of the plan returns XS_SETTLED as soon as no tuple is in flight; so does that of each
 * part, one after another. From any thread. */
void xs_plan_settle(xs_plan *plan);
/* The same for a plan that is about to be cut, which may be in the middle of a burst. */
void xs_plan_settle_early(xs_plan *plan);
/* Whether every source that has not ended has admitted a few tuples, so that busy times say something. */
int32_t xs_plan_is_measured(const xs_plan *plan);

/* Cuts a settled plan under df into parts that threads run, by the busy times so far. Returns the number
 * of parts: at most `parts`, fewer if the operators cannot be divided; 1 leaves the plan unchanged.
 * -1: no memory. The first part is the plan itself, and owns the others. */
int32_t xs_plan_cut(xs_plan *plan, int32_t parts);
xs_plan *xs_plan_part(xs_plan *plan, int32_t part);
int32_t xs_op_part(const xs_op *op);
/* Parts stop waiting for each other, and tuples in flight are dropped. From any thread. */
void xs_plan_give_up(xs_plan *plan);

/* Runs for about budget_ns. XS_OK: there is more to do; XS_END: all done; XS_WAIT: every source
 * waits; XS_FAILED: see xs_plan_failure. Each part of a plan is run by a thread of its own. */
int32_t xs_plan_run(xs_plan *plan, int64_t budget_ns);

#endif
