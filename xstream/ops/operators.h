/* The operators of the library that are written in C. */
#ifndef XS_OPERATORS_H
#define XS_OPERATORS_H
#include "../engine/operator.h"

/* Each constructor adds one operator to the plan and returns it; NULL without memory.
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

/* Index i of one signal is, at the same time, index shift + ceil((num * i + rest) / den) of another. */
typedef struct {
    int64_t num, den, rest, shift;
} xs_scale;

/* Operators that move segments and leave their samples alone. */
xs_op *xs_op_rewindow(xs_plan *plan, int64_t width, int64_t gap, int32_t flush);
xs_op *xs_op_dewindow(xs_plan *plan);
xs_op *xs_op_zip(xs_plan *plan, int32_t ports);
xs_op *xs_op_union(xs_plan *plan);
/* Tuples of all streams in the order of an integer field, which ascends in each of them; where
 * `tagged`, each behind the number of its stream. */
xs_op *xs_op_ordered(xs_plan *plan, int32_t ports, int32_t field, int32_t tagged);
xs_op *xs_op_select(xs_plan *plan, int32_t fields, const int32_t *chosen);
/* flagged: control tuples are (keep, start, stop), else (start, stop). Ranges are scaled to the
 * indices of each stream. */
xs_op *xs_op_gate(xs_plan *plan, int32_t flagged, const xs_scale *scale);
xs_op *xs_op_sync(xs_plan *plan, int32_t streams, int32_t flush, const xs_scale *scales);
/* Windows of the first stream, each with the samples of the others at the same time. */
xs_op *xs_op_align(xs_plan *plan, int32_t others, const xs_scale *scales);
/* unique: a key comes once on each side. */
xs_op *xs_op_join(xs_plan *plan, int32_t left_key, int32_t right_key, int32_t unique);
xs_op *xs_op_deinterleave(xs_plan *plan, int32_t channels);

/* Results of sinks. */
int64_t xs_collected(xs_op *op);
const xs_slot *xs_collected_tuple(xs_op *op, int64_t number);

#endif
