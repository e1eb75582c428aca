/* Rolling segments: the state of a kernel that needs the last n samples.
 *
 * The operator is the only owner, so it may write to the samples, and samples that are cut off are
 * freed at once. As for all segments, the memory manager determines the cost of appending and
 * cutting. */
#include "internal.h"

struct xs_rolling {
    int64_t word[XS_ROLLING_WORDS];
    xs_manager *manager; /* the plan's manager, which outlives the operators */
    int64_t itemsize;
    xs_seg *seg;   /* the current samples */
    xs_seg *fresh; /* allocated for new samples, until they are appended */
};

static void note_range(xs_rolling *rolling)
{
    rolling->word[XS_ROLLING_START] = rolling->seg->start;
    rolling->word[XS_ROLLING_STOP] = seg_stop(rolling->seg);
}

static void forget_fresh(xs_rolling *rolling)
{
    if (rolling->fresh) xs_seg_drop(rolling->fresh);
    rolling->fresh = NULL;
}

/* Returns NULL if memory ran out, and so a non-NULL address even for zero samples. */
static char *rolling_room(xs_rolling *rolling, int64_t width)
{
    forget_fresh(rolling);
    int64_t start = rolling->word[XS_ROLLING_STOP];
    if (!indices_fit(start, width)) return NULL;
    rolling->fresh = xs_seg_new(rolling->manager, start, width, rolling->itemsize);
    if (!rolling->fresh) return NULL;
    char *data = xs_seg_own_data(rolling->fresh);
    return data ? data : (char *)rolling;
}

/* Appends the first `width` new samples. The segment may be narrowed in place: it is not shared. */
static int64_t rolling_append(xs_rolling *rolling, int64_t width)
{
    xs_seg *fresh = rolling->fresh;
    if (!fresh || width < 0 || width > fresh->width) return XS_FAILED;
    fresh->width = width;
    xs_seg *grown = xs_seg_append(rolling->seg, fresh);
    forget_fresh(rolling);
    if (!grown) return XS_FAILED;
    xs_seg_drop(rolling->seg);
    rolling->seg = grown;
    note_range(rolling);
    return XS_OK;
}

static int64_t rolling_cut(xs_rolling *rolling, int64_t start)
{
    if (start > rolling->word[XS_ROLLING_STOP]) start = rolling->word[XS_ROLLING_STOP];
    xs_seg *rest = xs_seg_trim(rolling->seg, start);
    if (!rest) {
        rolling->seg = xs_seg_new(rolling->manager, start, 0, rolling->itemsize);
        return XS_FAILED;
    }
    rolling->seg = rest;
    note_range(rolling);
    return XS_OK;
}

/* Returns the range in place if it lies in one piece; otherwise joins all pieces first. */
static char *rolling_at(xs_rolling *rolling, int64_t start, int64_t width)
{
    xs_seg *seg = rolling->seg;
    if (!width) return (char *)rolling;
    if (!seg->block) {
        xs_walk walk;
        xs_piece piece;
        int64_t samples;
        walk_begin(&walk, seg, start, start + width);
        walk_next(&walk, &piece, &samples);
        if (samples == width) return piece.data;
        xs_seg *joined = xs_seg_edit(seg);
        if (!joined) return NULL;
        xs_seg_drop(seg);
        rolling->seg = seg = joined;
    }
    return seg->block->data + seg->offset + (start - seg->start) * seg->itemsize;
}

void rolling_free(xs_rolling *rolling)
{
    if (!rolling) return;
    forget_fresh(rolling);
    if (rolling->seg) xs_seg_drop(rolling->seg);
    free(rolling);
}

xs_seg *rolling_segment(const xs_rolling *rolling) { return rolling->seg; }

int64_t rolling_itemsize(const xs_rolling *rolling) { return rolling->itemsize; }

bool rolling_replace(xs_rolling *rolling, xs_seg *seg)
{
    xs_seg *own = xs_seg_edit(seg); /* the loader still refers to `seg`, and a rolling segment is written */
    xs_seg_drop(seg);
    if (!own) return false;
    xs_seg_drop(rolling->seg);
    rolling->seg = own;
    note_range(rolling);
    return true;
}

int32_t xs_kernel_rolling(xs_op *op, int32_t k, int64_t start, int64_t width, int64_t itemsize,
                          const void *bytes)
{
    xs_manager *manager = op->plan->manager;
    xs_rolling *rolling = calloc(1, sizeof *rolling);
    xs_seg *seg = rolling && indices_fit(start, width) ? xs_seg_new(manager, start, width, itemsize)
                                                       : NULL;
    if (!seg) {
        free(rolling);
        return XS_FAILED;
    }
    if (width) memcpy(xs_seg_own_data(seg), bytes, (size_t)seg_bytes(seg));
    *rolling = (xs_rolling){
        .word = {[XS_ROLLING_ROOM] = (int64_t)rolling_room,
                 [XS_ROLLING_APPEND] = (int64_t)rolling_append,
                 [XS_ROLLING_CUT] = (int64_t)rolling_cut,
                 [XS_ROLLING_AT] = (int64_t)rolling_at},
        .manager = manager, .itemsize = itemsize, .seg = seg};
    note_range(rolling);
    if (kernel_keep_rolling(op, k, rolling)) return XS_OK;
    rolling_free(rolling);
    return XS_FAILED;
}

void xs_rolling_read(xs_op *op, int32_t k, void *out)
{
    xs_seg *seg = kernel_rolling(op, k)->seg;
    xs_seg_read(seg, seg->start, seg->width, out);
}

int64_t xs_rolling_start(xs_op *op, int32_t k) { return kernel_rolling(op, k)->seg->start; }

int64_t xs_rolling_width(xs_op *op, int32_t k) { return kernel_rolling(op, k)->seg->width; }
