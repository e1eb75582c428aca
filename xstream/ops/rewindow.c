/* rewindow: turns segments of any width into windows of one width, every `step` samples. Windows are
 * cut out of the appended segments, so no sample is copied unless the memory manager copies. */
#include "buffer.h"

typedef struct {
    xs_op op;
    int64_t width, step;
    bool flush;
    int64_t next; /* start of the next window, once the stream has begun */
    xs_stretch kept;
} xs_rewindow;

/* A window past the last possible index is never emitted. */
static void step_on(xs_rewindow *rewindow)
{
    if (__builtin_add_overflow(rewindow->next, rewindow->step, &rewindow->next))
        rewindow->next = INT64_MAX;
}

static int32_t emit_full_windows(xs_rewindow *rewindow)
{
    xs_seg *kept = rewindow->kept.seg;
    int32_t status = XS_OK;
    while (!status && rewindow->next <= seg_stop(kept) - rewindow->width) {
        xs_seg *window = xs_seg_subseg(kept, rewindow->next, rewindow->width);
        step_on(rewindow);
        status = emit_segment(&rewindow->op, 0, window);
    }
    return status;
}

static int32_t rewindow_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_rewindow *rewindow = (xs_rewindow *)op;
    xs_stretch *kept = &rewindow->kept;
    xs_seg *seg = tuple->seg;
    if (!seg->width) return XS_OK;
    if (!kept->begun) rewindow->next = seg->start;
    if (!kept->seg && seg->width == rewindow->width && seg->start == rewindow->next &&
        rewindow->step >= rewindow->width) { /* the segment already is the next window */
        int32_t status = stretch_check(op, kept, seg);
        if (status) return status;
        kept->begun = true;
        kept->last_start = seg->start;
        kept->last_stop = seg_stop(seg);
        step_on(rewindow);
        return XS_FORWARD;
    }
    int32_t status = stretch_add(op, kept, seg, rewindow->next);
    if (status || !kept->seg) return status;
    status = emit_full_windows(rewindow);
    /* Once per tuple, not once per window, because copy-always copies the remaining samples. */
    return status ? status : stretch_trim(op, kept, rewindow->next);
}

static int32_t rewindow_finish(xs_op *op)
{
    xs_rewindow *rewindow = (xs_rewindow *)op;
    xs_seg *rest = rewindow->kept.seg;
    rewindow->kept.seg = NULL;
    if (!rest) return XS_OK;
    if (rewindow->flush) return emit_segment(op, 0, rest);
    xs_seg_drop(rest);
    return XS_OK;
}

static void rewindow_destroy(xs_op *op) { stretch_drop(&((xs_rewindow *)op)->kept); }

static void rewindow_save(xs_op *op, xs_image *image)
{
    const xs_rewindow *rewindow = (xs_rewindow *)op;
    save_int(image, rewindow->next);
    stretch_save(image, &rewindow->kept);
}

/* The next window begins inside of the samples that are kept, or after all that were received. */
static bool rewindow_load(xs_op *op, xs_stored *stored)
{
    xs_rewindow *rewindow = (xs_rewindow *)op;
    const xs_stretch *kept = &rewindow->kept;
    if (!load_int(stored, &rewindow->next) || !stretch_load(stored, &rewindow->kept, 0)) return false;
    return !kept->begun || rewindow->next >= (kept->seg ? kept->seg->start : kept->last_stop);
}

static const xs_op_table rewindow_table = {
    .process = rewindow_process, .finish = rewindow_finish, .destroy = rewindow_destroy,
    .save = rewindow_save, .load = rewindow_load};

xs_op *xs_op_rewindow(xs_plan *plan, int64_t width, int64_t gap, int32_t flush)
{
    xs_rewindow *rewindow = op_new(plan, sizeof *rewindow, &rewindow_table);
    if (!rewindow) return NULL;
    rewindow->width = width;
    if (__builtin_add_overflow(width, gap, &rewindow->step)) rewindow->step = INT64_MAX;
    rewindow->flush = flush;
    return &rewindow->op;
}
