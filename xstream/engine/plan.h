/* Plans: operators connected by edges. The schedulers in ../sched run them. */
#ifndef XS_PLAN_H
#define XS_PLAN_H
#include "operator.h"

xs_plan *xs_plan_new(xs_manager *manager);
void xs_plan_free(xs_plan *plan); /* with its operators and queued tuples */
int32_t xs_plan_shape_in(xs_op *op, int32_t ports, const xs_shape *shapes);
int32_t xs_plan_shape_out(xs_op *op, int32_t ports, const xs_shape *shapes);
int32_t xs_plan_connect(xs_op *from, int32_t out_port, xs_op *to, int32_t in_port);
void xs_plan_stop(xs_plan *plan); /* from any thread: sources admit no more tuples */
int32_t xs_plan_stopped(const xs_plan *plan);

/* Before the first run: every tuple is timed, and the costs in the memory manager are counted. */
int32_t xs_plan_profile(xs_plan *plan);
void xs_op_cost_read(xs_op *op, xs_cost *out);

typedef struct {
    xs_op *op;
    xs_op *stand_in; /* the operator, or its clone in another part that has failed in its place */
    int32_t port, fields;
    const xs_slot *tuple;
    int32_t out_of_memory; /* whether that was the failure */
    const char *message;
} xs_failure;
void xs_plan_failure(xs_plan *plan, xs_failure *out);
/* The next five may be called from any thread during a run, but not while the plan is being cut. */
void xs_op_stats_read(xs_op *op, xs_op_stats *out);
enum { XS_SNAPSHOT_COLUMNS = 6 };
/* Tuples, samples, emitted tuples, busy nanoseconds, dropped tuples and queue peak of each operator. */
void xs_ops_snapshot(xs_op **ops, int32_t count, int64_t *out);
/* The tuples that wait for an input port of each operator. */
void xs_ports_waiting(xs_op **ops, const int32_t *ports, int32_t count, int64_t *out);
int64_t xs_plan_queue_bytes(xs_plan *plan);
/* How full the ring from each part to the next is, from 0 to 1. */
void xs_plan_rings(xs_plan *plan, double *fill);
/* Of a source whose tuples have arrival times: how late they were admitted, and the time from arrival
 * until all their results were processed. Counts are 0 for any other operator. */
void xs_op_delays_read(xs_op *op, xs_delay_stats *lateness, xs_delay_stats *latency);
int64_t xs_plan_queue_bytes_peak(xs_plan *plan);

#endif
