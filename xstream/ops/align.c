/* zip of signals at different rates: every window of the first stream with the samples of the others
 * at the same time. The other streams are buffered by appending until they cover the window. */
#include "buffer.h"
#include "scale.h"

typedef struct {
    xs_stretch stretch;
    xs_scale scale;
    int64_t first; /* first index of the stream */
    int64_t itemsize;
} xs_align_stream;

typedef struct {
    xs_op op;
    xs_align_stream *other;
    int32_t others;
    xs_backlog windows;
    int64_t last_start;
    bool begun;
} xs_align;

/* XS_WAIT: a stream does not reach the end of the window yet; XS_END: one began after its start. */
static int32_t check_window(xs_align *align, const xs_seg *window)
{
    int32_t status = XS_OK;
    for (int32_t i = 0; i < align->others; i++) {
        const xs_align_stream *other = &align->other[i];
        int64_t from, to;
        if (!scale_index(&other->scale, window->start, &from) ||
            !scale_index(&other->scale, seg_stop(window), &to))
            return op_fail(&align->op, "[%lld, %lld) lies outside the indices of stream %d, which "
                           "end at 2**62", (long long)window->start, (long long)seg_stop(window), i + 1);
        if (!other->stretch.begun || other->stretch.last_stop < to) status = XS_WAIT;
        else if (from < other->first && status != XS_WAIT) status = XS_END;
    }
    return status;
}

static int32_t emit_window(xs_align *align, xs_seg *window)
{
    xs_slot tuple[MAX_FIELDS];
    int32_t cut = 0, status;
    tuple[0].seg = window;
    for (; cut < align->others; cut++) {
        xs_align_stream *other = &align->other[cut];
        int64_t from, to;
        scale_index(&other->scale, window->start, &from);
        scale_index(&other->scale, seg_stop(window), &to);
        xs_seg *part = to > from ? xs_seg_subseg(other->stretch.seg, from, to - from)
                                 : xs_seg_new(align->op.plan->manager, from, 0, other->itemsize);
        if (!part) break;
        tuple[cut + 1].seg = part;
    }
    status = cut == align->others ? emit(&align->op, 0, tuple) : op_out_of_memory(&align->op);
    while (cut) xs_seg_drop(tuple[cut--].seg);
    return status;
}

/* Windows arrive in order of their start, so earlier samples are not needed again. Trims only if at
 * least half of the buffer can go, because a trim may copy the rest. */
static int32_t forget_before(xs_align *align, int64_t start)
{
    int32_t status = XS_OK;
    for (int32_t i = 0; i < align->others && !status; i++) {
        xs_align_stream *other = &align->other[i];
        xs_seg *seg = other->stretch.seg;
        int64_t from;
        if (seg && scale_index(&other->scale, start, &from) && from >= seg->start + seg->width / 2)
            status = stretch_trim(&align->op, &other->stretch, from);
    }
    return status;
}

static int32_t serve(xs_align *align)
{
    const xs_shape *shape = &align->op.in_shape[0];
    while (align->windows.length) {
        xs_seg *window = backlog_front(&align->windows, shape)->seg;
        int32_t status = check_window(align, window);
        if (status == XS_WAIT) return XS_OK;
        if (status == XS_FAILED) return status;
        if (status == XS_OK) status = emit_window(align, window);
        if (status == XS_FAILED) return status;
        status = forget_before(align, window->start);
        backlog_pop(&align->windows, shape);
        if (status) return status;
    }
    return XS_OK;
}

static int32_t align_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_align *align = (xs_align *)op;
    xs_seg *seg = tuple->seg;
    int32_t status;
    if (port == 0) {
        if (align->begun && seg->start < align->last_start)
            return op_fail(op, "a window starts at %lld, before the last one at %lld",
                           (long long)seg->start, (long long)align->last_start);
        align->begun = true;
        align->last_start = seg->start;
        status = backlog_push(op, &align->windows, tuple, &op->in_shape[0]);
    } else {
        xs_align_stream *other = &align->other[port - 1];
        if (!seg->width) return XS_OK;
        if (!other->stretch.begun) {
            other->first = seg->start;
            other->itemsize = seg->itemsize;
        }
        status = stretch_add(op, &other->stretch, seg, INT64_MIN);
    }
    return status ? status : serve(align);
}

static void align_destroy(xs_op *op)
{
    xs_align *align = (xs_align *)op;
    if (op->ins) backlog_drop(&align->windows, &op->in_shape[0]);
    for (int32_t i = 0; i < align->others; i++) stretch_drop(&align->other[i].stretch);
    free(align->other);
}

static void align_save(xs_op *op, xs_image *image)
{
    const xs_align *align = (xs_align *)op;
    save_int(image, align->begun);
    save_int(image, align->last_start);
    backlog_save(image, &align->windows, &op->in_shape[0]);
    for (int32_t i = 0; i < align->others; i++) {
        save_int(image, align->other[i].first);
        stretch_save(image, &align->other[i].stretch);
    }
}

/* The start of the earliest window that may still be cut out of the other streams. */
static int64_t earliest(const xs_align *align)
{
    int64_t start = align->begun ? align->last_start : INT64_MIN;
    for (int64_t i = 0; i < align->windows.length; i++) {
        int64_t at = (align->windows.head + i) & (align->windows.capacity - 1);
        const xs_seg *window = align->windows.rows[at * align->op.in_shape[0].fields].seg;
        if (window->start < start) start = window->start;
    }
    return start;
}

/* Samples from the earliest window on, or from the first one on, are there. */
static bool other_fits(const xs_align_stream *other, int64_t window)
{
    const xs_stretch *stretch = &other->stretch;
    int64_t needed = other->first, from;
    if (window > INT64_MIN && scale_index(&other->scale, window, &from) && from > needed) needed = from;
    return !stretch->begun || (stretch->seg ? stretch->seg->start : stretch->last_stop) <= needed;
}

static bool align_load(xs_op *op, xs_stored *stored)
{
    xs_align *align = (xs_align *)op;
    if (!load_flag(stored, &align->begun) || !load_int(stored, &align->last_start) ||
        !backlog_load(stored, op, &align->windows, 0))
        return false;
    if (align->windows.length && !align->begun) return false;
    for (int32_t i = 0; i < align->others; i++) {
        xs_align_stream *other = &align->other[i];
        if (!load_int(stored, &other->first) || !stretch_load(stored, &other->stretch, i + 1) ||
            !other_fits(other, earliest(align)))
            return false;
        other->itemsize = load_itemsize(stored, i + 1, 0);
    }
    return true;
}

static const xs_op_table align_table = {
    .process = align_process, .destroy = align_destroy, .save = align_save, .load = align_load};

xs_op *xs_op_align(xs_plan *plan, int32_t others, const xs_scale *scales)
{
    xs_align_stream *other = calloc((size_t)others, sizeof *other);
    xs_align *align = other ? op_new(plan, sizeof *align, &align_table) : NULL;
    if (!align) {
        free(other);
        return NULL;
    }
    for (int32_t i = 0; i < others; i++) other[i].scale = scales[i];
    align->other = other;
    align->others = others;
    return &align->op;
}
