/* dewindow: emits the new samples of each window, so that the stream is continuous again. */
#include "buffer.h"

typedef struct {
    xs_op op;
    xs_stretch seen; /* never holds a segment */
} xs_dewindow;

static int32_t dewindow_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_stretch *seen = &((xs_dewindow *)op)->seen;
    xs_seg *seg = tuple->seg;
    if (!seg->width) return XS_OK;
    int32_t status = stretch_check(op, seen, seg);
    if (status) return status;
    int64_t from = seen->begun ? seen->last_stop : seg->start, stop = seg_stop(seg);
    seen->begun = true;
    seen->last_start = seg->start;
    if (stop <= from) return XS_OK;
    seen->last_stop = stop;
    if (from == seg->start) return XS_FORWARD;
    return emit_segment(op, 0, xs_seg_subseg(seg, from, stop - from));
}

static void dewindow_save(xs_op *op, xs_image *image)
{
    stretch_save(image, &((xs_dewindow *)op)->seen);
}

static bool dewindow_load(xs_op *op, xs_stored *stored)
{
    return stretch_load(stored, &((xs_dewindow *)op)->seen, 0) && !((xs_dewindow *)op)->seen.seg;
}

static void dewindow_destroy(xs_op *op) { stretch_drop(&((xs_dewindow *)op)->seen); }

static const xs_op_table dewindow_table = {
    .process = dewindow_process, .destroy = dewindow_destroy, .save = dewindow_save,
    .load = dewindow_load};

xs_op *xs_op_dewindow(xs_plan *plan) { return op_new(plan, sizeof(xs_dewindow), &dewindow_table); }
