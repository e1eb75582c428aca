/* deinterleave: sample i of the stream is sample i / n of output i % n. The output follows from the
 * index, so windows need not hold whole frames and the operator has no state. */
#include "../engine/saving.h"
#include "operators.h"

typedef struct {
    xs_op op;
    int32_t channels;
} xs_deinterleave;

static int64_t divided_up(int64_t a, int64_t n) { return a >= 0 ? (a + n - 1) / n : -(-a / n); }

static void copy_strided(char *to, const char *from, int64_t count, int64_t stride, int64_t itemsize)
{
    switch (itemsize) { /* a constant size is copied in one instruction */
    case 2: for (; count; count--, to += 2, from += stride) memcpy(to, from, 2); break;
    case 4: for (; count; count--, to += 4, from += stride) memcpy(to, from, 4); break;
    case 8: for (; count; count--, to += 8, from += stride) memcpy(to, from, 8); break;
    default:
        for (; count; count--, to += itemsize, from += stride) memcpy(to, from, (size_t)itemsize);
    }
}

static int32_t emit_channel(xs_deinterleave *op, int32_t channel, const xs_seg *seg, const char *data)
{
    int64_t n = op->channels, itemsize = seg->itemsize;
    int64_t first = divided_up(seg->start - channel, n), end = divided_up(seg_stop(seg) - channel, n);
    if (first == end) return XS_OK;
    xs_seg *own = xs_seg_new(op->op.plan->manager, first, end - first, itemsize);
    if (!own) return op_out_of_memory(&op->op);
    copy_strided(xs_seg_own_data(own), data + (first * n + channel - seg->start) * itemsize,
                 end - first, n * itemsize, itemsize);
    xs_slot tuple = {.seg = own};
    int32_t status = emit(&op->op, channel, &tuple);
    xs_seg_drop(own);
    return status;
}

static int32_t deinterleave_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_deinterleave *deinterleave = (xs_deinterleave *)op;
    xs_seg *seg = tuple->seg;
    if (!seg->width) return XS_OK;
    xs_block *hold;
    const char *data = xs_seg_hold(seg, &hold);
    if (!data) return op_out_of_memory(op);
    int32_t status = XS_OK;
    for (int32_t channel = 0; channel < deinterleave->channels && !status; channel++)
        status = emit_channel(deinterleave, channel, seg, data);
    xs_block_unhold(hold);
    return status;
}

static const xs_op_table deinterleave_table = {.process = deinterleave_process, .save = save_nothing};

xs_op *xs_op_deinterleave(xs_plan *plan, int32_t channels)
{
    xs_deinterleave *deinterleave = op_new(plan, sizeof *deinterleave, &deinterleave_table);
    if (deinterleave) deinterleave->channels = channels;
    return deinterleave ? &deinterleave->op : NULL;
}
