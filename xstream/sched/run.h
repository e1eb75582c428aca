/* Plans: operators connected by edges, and the four schedulers that run them. */
#ifndef XS_PLAN_H
#define XS_PLAN_H
#include "../engine/operator.h"

typedef enum { XS_FIFO, XS_FIFO_SLICE, XS_RTC, XS_DF } xs_scheduler_kind;

xs_plan *xs_plan_new(xs_manager *manager);
void xs_plan_free(xs_plan *plan); /* operators, queued tuples and all */
int32_t xs_plan_shape_in(xs_op *op, int32_t ports, const xs_shape *shapes);
int32_t xs_plan_shape_out(xs_op *op, int32_t ports, const xs_shape *shapes);
int32_t xs_plan_connect(xs_op *from, int32_t out_port, xs_op *to, int32_t in_port);

/* After the last edge: which edges are called directly, which queue. tuple_burst 0: no rate
 * control. */
int32_t xs_plan_prepare(xs_plan *plan, int32_t scheduler, int64_t tuple_burst, int64_t slice_ns);

/* Runs for about budget_ns. XS_OK: there is more to do; XS_END: all done; XS_WAIT: every source
 * waits; XS_FAILED: see xs_plan_failure. */
int32_t xs_plan_run(xs_plan *plan, int64_t budget_ns);
void xs_plan_stop(xs_plan *plan); /* from any thread: sources admit nothing more */

/* Before the first run: every tuple is timed, and what operators cost the manager is counted. */
int32_t xs_plan_profile(xs_plan *plan);
void xs_op_cost_read(xs_op *op, xs_cost *out);

typedef struct {
    xs_op *op;
    int32_t port, fields;
    const xs_slot *tuple;
    const char *message;
} xs_failure;
void xs_plan_failure(xs_plan *plan, xs_failure *out);
void xs_plan_fail(xs_op *op, const char *message); /* for operators that are not written in C */
void xs_op_stats_read(xs_op *op, xs_op_stats *out);
int64_t xs_plan_queue_bytes_peak(xs_plan *plan);
int32_t xs_plan_queued_edges(xs_plan *plan);

#endif
