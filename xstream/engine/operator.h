/* Operators as the core sees them: tuples in by reference, tuples out by xs_emit.
 *
 * A tuple is an array of eight-byte slots, one a field: an integer (booleans too), a float64, or a
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

/* XS_FORWARD: what process returns instead of emitting its own input on port 0; the engine then
 * passes it on without nesting a call. */
typedef enum { XS_OK, XS_FAILED, XS_END, XS_WAIT, XS_FORWARD } xs_status;

/* The shape of a port's tuples: how many fields, and which of them (by bit) are segments. */
typedef struct {
    int32_t fields;
    uint64_t segments;
} xs_shape;

typedef struct {
    int64_t tuples, samples, busy_ns, emitted;
    int64_t queue_peak, queue_peak_bytes;
} xs_op_stats;

/* What an operator made its memory manager do, in a profiled run. What handing a tuple over costs is
 * put down to the operator that gets it. */
typedef struct {
    int64_t bytes_copied[5]; /* by xs_reason */
    int64_t allocations, reallocations, moved_reallocations, manager_ns;
} xs_cost;

/* Operators of the core. Each constructor adds one to the plan and returns it; NULL without memory.
 * Input ports and output ports get their shapes afterwards (xs_plan_shape_in, xs_plan_shape_out). */
xs_op *xs_op_pass(xs_plan *plan);
xs_op *xs_op_count(xs_plan *plan);
xs_op *xs_op_collect(xs_plan *plan);

/* Windows of a recording: `window` samples every `window` samples, the whole of it `repeat` times
 * (< 0: for ever), indices running on. The last window of all may be shorter where `partial`.
 * offered_hz > 0: samples arrive at that rate from the first call on. */
xs_op *xs_op_array_source(xs_plan *plan, xs_seg *recording, int64_t window, int64_t repeat,
                          int32_t partial, double offered_hz);
/* One tuple a sample of the same recording, as a scalar: the engine without segments. */
xs_op *xs_op_sample_source(xs_plan *plan, xs_seg *recording, int32_t type, int64_t repeat);
/* Prepared tuples, `count` of them, one after another; the caller keeps them and their segments. */
xs_op *xs_op_list_source(xs_plan *plan, const xs_slot *tuples, int64_t count);

/* Operators that move segments and leave their samples alone. */
xs_op *xs_op_rewindow(xs_plan *plan, int64_t width, int64_t gap, int32_t flush);
xs_op *xs_op_dewindow(xs_plan *plan);
xs_op *xs_op_zip(xs_plan *plan, int32_t ports);
xs_op *xs_op_union(xs_plan *plan);
/* Tuples of all streams in the order of an integer field, which ascends in each of them; where
 * `tagged`, each behind the number of its stream. */
xs_op *xs_op_ordered(xs_plan *plan, int32_t ports, int32_t field, int32_t tagged);
xs_op *xs_op_select(xs_plan *plan, int32_t fields, const int32_t *chosen);
/* flagged: control tuples are (keep, start, stop), else (start, stop). */
xs_op *xs_op_gate(xs_plan *plan, int32_t flagged);
xs_op *xs_op_sync(xs_plan *plan, int32_t streams, int32_t flush);
/* unique: a key comes once on each side. */
xs_op *xs_op_join(xs_plan *plan, int32_t left_key, int32_t right_key, int32_t unique);
xs_op *xs_op_deinterleave(xs_plan *plan, int32_t channels);

/* From a plan to another that a different thread runs: at most `capacity` tuples wait, and whoever
 * gives waits while they do. Closed: nothing more will come (the sink's plan has ended); abandoned:
 * nobody takes any more, and what is given is dropped. */
typedef struct xs_channel xs_channel;
xs_channel *xs_channel_new(int64_t capacity, int32_t fields, uint64_t segments);
void xs_channel_drop(xs_channel *channel); /* lives on until the plans of both ends have gone */
void xs_channel_close(xs_channel *channel);
void xs_channel_abandon(xs_channel *channel);
int64_t xs_channel_length(xs_channel *channel);
xs_op *xs_op_channel_sink(xs_plan *plan, xs_channel *channel);
xs_op *xs_op_channel_source(xs_plan *plan, xs_channel *channel);

/* Results of sinks. */
int64_t xs_collected(xs_op *op);
const xs_slot *xs_collected_tuple(xs_op *op, int64_t number);
int64_t xs_counted_samples(xs_op *op);

/* A plain Python operator. xs_python_process(token) finds the tuple in the exchange below, and
 * leaves there what it emits: C passes it on after Python has returned, so that chains of Python
 * operators do not nest. Segments carry a count in both directions. */
typedef struct {
    xs_slot *input;      /* the tuple; counts on its segments belong to the callee */
    int64_t *extent;     /* start and width of each field that is a segment */
    xs_slot *rows;       /* emitted tuples, one after another; freed by nobody here */
    int64_t count;       /* how many */
    int32_t port;        /* input port of the tuple; output port of the rows */
} xs_exchange;
xs_op *xs_op_python(xs_plan *plan, int64_t token);
xs_op *xs_op_python_source(xs_plan *plan, int64_t token);
xs_exchange *xs_python_exchange(xs_op *op);
int32_t xs_emit(xs_op *op, int32_t port, const xs_slot *tuple);

/* A compiled kernel. `call` gets a frame of 64-bit words, laid out by xstream/kernels/_adapter.py: the
 * words below, then inputs (a segment takes three words: address, width, start; a scalar one),
 * arguments, states (address and length) and outputs. */
typedef enum { XS_KERNEL_MAP, XS_KERNEL_FILTER, XS_KERNEL_ITERATE } xs_kernel_mode;
typedef enum {
    XS_FRAME_SELF,    /* the operator */
    XS_FRAME_ALLOCATE, /* char *(*)(int64_t *frame, int64_t field, int64_t width, int64_t start) */
    XS_FRAME_SEND,    /* int64_t (*)(int64_t *frame): emits the outputs as they stand */
    XS_FRAME_RAISED,  /* what the kernel raised: an exception of Python, with a count; or 0 */
    XS_FRAME_VERDICT, /* map: emit or not; filter: pass or not */
    XS_FRAME_ENDED,   /* the call after the last tuple, with empty inputs */
    XS_FRAME_INPUTS   /* the first input word */
} xs_frame_word;
/* Where an output segment starts: where the input does, scaled by num/den, behind the last output,
 * or where the kernel says. */
typedef enum { XS_START_INPUT, XS_START_SCALED, XS_START_RUNNING, XS_START_GIVEN } xs_start_rule;

xs_op *xs_op_kernel(xs_plan *plan, int64_t call_address, int32_t mode, int32_t words,
                    int32_t outputs_at, int32_t states_at, int32_t states);
int64_t *xs_kernel_frame(xs_op *op);
void xs_kernel_output(xs_op *op, int32_t field, int64_t itemsize, int32_t start_rule, int64_t num,
                      int64_t den);
/* State k: `length` items of `itemsize` bytes, set from `bytes`. */
int32_t xs_kernel_state(xs_op *op, int32_t k, int64_t length, int64_t itemsize, const void *bytes);
/* Only these fields of the input, by bit, are put into the frame; at first all are. */
void xs_kernel_uses(xs_op *op, uint64_t fields);
/* The kernel is called once more when its streams have ended. */
void xs_kernel_at_end(xs_op *op);
/* Debug mode: a kernel notes an index that is out of bounds before it raises; numba's errors carry
 * no numbers. The notes are the thread's own: index, axis, size. */
void xs_note_index(int64_t index, int64_t axis, int64_t size);
const int64_t *xs_noted_index(void);
/* Grows the state array at `data` to `length` items, new ones zero; where it is now, or NULL. In
 * front of a state array stand XS_STATE_MARK and, last, the address of this function. */
typedef enum { XS_STATE_MARK = 0x57A7E } xs_state_mark;
void *xs_state_grow(void *data, int64_t length);

#endif
