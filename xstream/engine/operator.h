/* The interface of operators: they receive tuples by reference and emit tuples.
 *
 * A tuple is an array of eight-byte slots, one per field: an integer (booleans too), a float64, or a
 * counted segment. The stream's schema says which, so slots carry no tags. An operator borrows the
 * tuple it is given: to keep a segment it takes a count (xs_seg_ref) of its own.
 */
#ifndef XS_OPERATOR_H
#define XS_OPERATOR_H
#include "../sigseg/sigseg.h"

typedef struct xs_plan xs_plan;
typedef struct xs_op xs_op;

typedef union {
    int64_t i;
    double f;
    xs_seg *seg;
} xs_slot;

/* XS_FORWARD: returned by process instead of emitting its own input on port 0; the engine then
 * passes it on without nesting a call. */
typedef enum { XS_OK, XS_FAILED, XS_END, XS_WAIT, XS_FORWARD, XS_SETTLED } xs_status;

/* The shape of a port's tuples: how many fields, and which of them (by bit) are segments. */
typedef struct {
    int32_t fields;
    uint64_t segments;
} xs_shape;

typedef struct {
    int64_t tuples, samples, busy_ns, emitted, dropped;
    int64_t queue_peak, queue_peak_bytes;
} xs_op_stats;

/* Measured delays: their number, quantiles (exact to 3 %) and maximum. */
typedef struct {
    int64_t count, p50_ns, p99_ns, worst_ns;
} xs_delay_stats;

/* The costs that an operator caused in the memory manager, in a profiled run. Passing a tuple is
 * charged to the operator that receives it. */
typedef struct {
    int64_t bytes_copied[5]; /* by xs_reason */
    int64_t allocations, reallocations, moved_reallocations, manager_ns;
} xs_cost;

/* A plain Python operator. xs_python_process(token) finds the tuple in the exchange below, and
 * leaves its results there: C passes them on after Python has returned, so that chains of Python
 * operators do not nest. Segments carry a count in both directions. */
typedef struct {
    xs_slot *input;      /* the tuple; counts on its segments belong to the callee */
    int64_t *extent;     /* start and width of each field that is a segment */
    xs_slot *rows;       /* emitted tuples in sequence; owned by Python */
    int64_t count;       /* how many */
    int32_t port;        /* input port of the tuple; output port of the rows */
} xs_exchange;
xs_op *xs_op_python(xs_plan *plan, int64_t token);
xs_op *xs_op_python_source(xs_plan *plan, int64_t token);
xs_exchange *xs_python_exchange(xs_op *op);

#endif
