/* gate: the samples of a stream that lie inside time ranges. Ranges arrive in order of their start.
 * The stream that is ahead waits, and no sample is appended or copied. */
#include "buffer.h"
#include "scale.h"

enum { CONTROL, SIGNAL };

typedef struct {
    int64_t keep, start, stop;
} xs_range;

typedef struct {
    xs_op op;
    bool flagged; /* ranges are (keep, start, stop); otherwise (start, stop) */
    xs_scale scale;
    xs_backlog ranges, segments;
    int64_t decided; /* samples before this index have been passed or dropped */
    int64_t last_range_start, last_segment_start;
    bool range_seen, segment_seen, any_decided;
} xs_gate;

static xs_range range_of(const xs_gate *gate, const xs_slot *tuple)
{
    if (!gate->flagged) return (xs_range){true, tuple[0].i, tuple[1].i};
    return (xs_range){tuple[0].i, tuple[1].i, tuple[2].i};
}

/* Converts a range to indices of the signal. */
static int32_t scaled_range(xs_gate *gate, const xs_slot *tuple, xs_range *out)
{
    xs_range range = *out = range_of(gate, tuple);
    if (scale_index(&gate->scale, range.start, &out->start) &&
        scale_index(&gate->scale, range.stop, &out->stop))
        return XS_OK;
    return op_fail(&gate->op, "[%lld, %lld) lies outside the indices of the signal, which end at "
                   "2**62", (long long)range.start, (long long)range.stop);
}

/* Passes the intersection of the first segment and the first range; drops the one that is finished. */
static int32_t serve_fronts(xs_gate *gate)
{
    xs_op *op = &gate->op;
    xs_range range;
    if (scaled_range(gate, backlog_front(&gate->ranges, &op->in_shape[CONTROL]), &range))
        return XS_FAILED;
    xs_seg *seg = backlog_front(&gate->segments, &op->in_shape[SIGNAL])->seg;
    int64_t from = seg->start > range.start ? seg->start : range.start;
    if (gate->any_decided && gate->decided > from) from = gate->decided;
    int64_t to = seg_stop(seg) < range.stop ? seg_stop(seg) : range.stop;
    int32_t status = XS_OK;
    if (range.keep && from < to)
        status = emit_segment(op, 0, to - from == seg->width ? xs_seg_ref(seg)
                                                              : xs_seg_subseg(seg, from, to - from));
    if (!gate->any_decided || to > gate->decided) gate->decided = to;
    gate->any_decided = true;
    bool range_done = seg_stop(seg) >= range.stop;
    if (seg_stop(seg) <= range.stop) backlog_pop(&gate->segments, &op->in_shape[SIGNAL]);
    if (range_done) backlog_pop(&gate->ranges, &op->in_shape[CONTROL]);
    return status;
}

static int32_t check_order(xs_op *op, const char *what, int64_t start, int64_t *last, bool *seen)
{
    if (*seen && start < *last)
        return op_fail(op, "a %s starts at %lld, before the last one at %lld", what,
                       (long long)start, (long long)*last);
    *seen = true;
    *last = start;
    return XS_OK;
}

static int32_t gate_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_gate *gate = (xs_gate *)op;
    int32_t status;
    if (port == CONTROL) {
        xs_range range;
        if (scaled_range(gate, tuple, &range)) return XS_FAILED;
        if (range.stop <= range.start) return XS_OK; /* an empty range */
        status = check_order(op, "range", range.start, &gate->last_range_start, &gate->range_seen);
    } else {
        if (!tuple->seg->width) return XS_OK;
        status = check_order(op, "segment", tuple->seg->start, &gate->last_segment_start,
                             &gate->segment_seen);
    }
    if (status) return status;
    xs_backlog *own = port == CONTROL ? &gate->ranges : &gate->segments;
    status = backlog_push(op, own, tuple, &op->in_shape[port]);
    while (!status && gate->ranges.length && gate->segments.length) status = serve_fronts(gate);
    return status;
}

static void gate_destroy(xs_op *op)
{
    xs_gate *gate = (xs_gate *)op;
    if (!op->ins) return; /* never connected */
    backlog_drop(&gate->ranges, &op->in_shape[CONTROL]);
    backlog_drop(&gate->segments, &op->in_shape[SIGNAL]);
}

static void gate_save(xs_op *op, xs_image *image)
{
    const xs_gate *gate = (xs_gate *)op;
    const int64_t seen[] = {gate->decided, gate->last_range_start, gate->last_segment_start,
                            gate->range_seen, gate->segment_seen, gate->any_decided};
    save_words(image, seen, sizeof seen / sizeof *seen);
    backlog_save(image, &gate->ranges, &op->in_shape[CONTROL]);
    backlog_save(image, &gate->segments, &op->in_shape[SIGNAL]);
}

static bool gate_load(xs_op *op, xs_stored *stored)
{
    xs_gate *gate = (xs_gate *)op;
    return load_int(stored, &gate->decided) && load_int(stored, &gate->last_range_start) &&
           load_int(stored, &gate->last_segment_start) && load_flag(stored, &gate->range_seen) &&
           load_flag(stored, &gate->segment_seen) && load_flag(stored, &gate->any_decided) &&
           backlog_load(stored, op, &gate->ranges, CONTROL) &&
           backlog_load(stored, op, &gate->segments, SIGNAL);
}

static const xs_op_table gate_table = {
    .process = gate_process, .destroy = gate_destroy, .save = gate_save, .load = gate_load};

xs_op *xs_op_gate(xs_plan *plan, int32_t flagged, const xs_scale *scale)
{
    xs_gate *gate = op_new(plan, sizeof *gate, &gate_table);
    if (!gate) return NULL;
    gate->flagged = flagged;
    gate->scale = *scale;
    return &gate->op;
}
