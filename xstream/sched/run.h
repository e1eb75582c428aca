/* Running a plan: the four schedulers, and rate control around any. */
#ifndef XS_RUN_H
#define XS_RUN_H
#include "../engine/plan.h"

typedef enum { XS_FIFO, XS_FIFO_SLICE, XS_RTC, XS_DF } xs_scheduler_kind;

/* After the last edge: which edges are called directly, which queue. tuple_burst 0: no rate
 * control. */
int32_t xs_plan_prepare(xs_plan *plan, int32_t scheduler, int64_t tuple_burst, int64_t slice_ns);

/* Runs for about budget_ns. XS_OK: there is more to do; XS_END: all done; XS_WAIT: every source
 * waits; XS_FAILED: see xs_plan_failure. */
int32_t xs_plan_run(xs_plan *plan, int64_t budget_ns);

#endif
