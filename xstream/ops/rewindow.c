/* rewindow: turns segments of any width into windows of one width, every `step` samples. Windows are
 * cut out of the appended segments, so no sample is copied unless the memory manager copies. */
#include "buffer.h"

typedef struct {
    xs_op op;
    int64_t width, step;
    bool flush;
    bool orders; /* emits orders for its half */
    int64_t next; /* start of the next window, once the stream has begun */
    xs_stretch kept;
} xs_rewindow;

/* A window past the last possible index is never emitted. */
static int64_t stepped(int64_t next, int64_t step)
{
    int64_t sum;
    return __builtin_add_overflow(next, step, &sum) ? INT64_MAX : sum;
}

static void step_on(xs_rewindow *rewindow) { rewindow->next = stepped(rewindow->next, rewindow->step); }

/* -- orders -------------------------------------------------------------------------------- */

/* In a plan for several threads the windows may be cut by a half (see xs_op_table) in another part. An
 * order is a segment and the number of windows in it, from its start on; if it is one, the segment is the
 * window, or what is left of it at the end of the stream. */
enum { COUNT = 1 };

/* An order is for windows of so many bytes at most, or for one: both threads are to find something to do. */
enum { ORDER_BYTES = 16 << 10 };

typedef struct {
    xs_op op;
    int64_t width, step;
} xs_cutter;

static int32_t cutter_process(xs_op *op, int32_t port, const xs_slot *order)
{
    const xs_cutter *cutter = (xs_cutter *)op;
    int64_t count = order[COUNT].i, next = order->seg->start;
    int32_t status = XS_OK;
    if (count == 1) {
        xs_seg *seg = order->seg;
        if (op->plan->given != order) return emit_segment(op, 0, xs_seg_ref(seg));
        op->plan->given->seg = NULL;
        return emit_segment(op, 0, seg);
    }
    for (int64_t i = 0; i < count && !status; i++, next = stepped(next, cutter->step))
        status = emit_segment(op, 0, xs_seg_subseg(order->seg, next, cutter->width));
    return status;
}

static int64_t order_size(const xs_slot *order) { return order[COUNT].i; }

static xs_op *cutter_clone(xs_op *op, xs_plan *plan) { return op_copy(op, plan, sizeof(xs_cutter)); }

static const xs_op_table cutter_table = {
    .process = cutter_process, .clone = cutter_clone, .order_size = order_size, .save = save_nothing};

static xs_op *rewindow_halve(xs_op *op, xs_plan *part)
{
    xs_rewindow *rewindow = (xs_rewindow *)op;
    xs_cutter *cutter = op_new(part, sizeof *cutter, &cutter_table);
    if (!cutter) return NULL;
    cutter->width = rewindow->width;
    cutter->step = rewindow->step;
    rewindow->orders = true;
    return &cutter->op;
}

/* Not counted as emitted: the half counts the windows. Takes over the count on `seg`. */
static int32_t pass_order(xs_op *op, xs_seg *seg, int64_t count)
{
    if (unlikely(!seg)) return op_out_of_memory(op);
    xs_slot order[ORDER_FIELDS] = {{.seg = seg}, {.i = count}};
    op->plan->given = order;
    int32_t status = pass(op->out[0].edge, order, &order_shape);
    op->plan->given = NULL;
    tuple_drop(order, order_shape.segments);
    return status;
}

/* The windows of `kept` that are full, from the next one on, in orders. */
static int32_t order_full_windows(xs_rewindow *rewindow)
{
    xs_seg *kept = rewindow->kept.seg;
    int64_t stop = seg_stop(kept), width = rewindow->width, step = rewindow->step;
    int32_t status = XS_OK;
    while (!status && rewindow->next <= stop - width) {
        int64_t first = rewindow->next, count = (stop - width - first) / step + 1;
        int64_t most = ORDER_BYTES / kept->itemsize / (step > width ? step : width);
        if (count > most) count = most ? most : 1;
        int64_t last = first + (count - 1) * step;
        rewindow->next = stepped(last, step);
        status = pass_order(&rewindow->op, xs_seg_subseg(kept, first, last + width - first), count);
    }
    return status;
}

/* -- the operator -------------------------------------------------------------------------- */

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
        return rewindow->orders ? pass_order(op, xs_seg_ref(seg), 1) : XS_FORWARD;
    }
    int32_t status = stretch_add(op, kept, seg, rewindow->next);
    if (status || !kept->seg) return status;
    status = rewindow->orders ? order_full_windows(rewindow) : emit_full_windows(rewindow);
    /* Once per tuple, not once per window, because copy-always copies the remaining samples. */
    return status ? status : stretch_trim(op, kept, rewindow->next);
}

static int32_t rewindow_finish(xs_op *op)
{
    xs_rewindow *rewindow = (xs_rewindow *)op;
    xs_seg *rest = rewindow->kept.seg;
    rewindow->kept.seg = NULL;
    if (!rest) return XS_OK;
    if (rewindow->flush && rewindow->orders) return pass_order(op, rest, 1);
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
    .halve = rewindow_halve, .save = rewindow_save, .load = rewindow_load};

xs_op *xs_op_rewindow(xs_plan *plan, int64_t width, int64_t gap, int32_t flush)
{
    xs_rewindow *rewindow = op_new(plan, sizeof *rewindow, &rewindow_table);
    if (!rewindow) return NULL;
    rewindow->width = width;
    if (__builtin_add_overflow(width, gap, &rewindow->step)) rewindow->step = INT64_MAX;
    rewindow->flush = flush;
    return &rewindow->op;
}
