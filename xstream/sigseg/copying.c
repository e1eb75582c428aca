/* copy-always and refcount-copy: the two managers that keep a segment in one block of its own size.
 * They differ only in what passing and cutting cost. */
#include "internal.h"

static xs_seg *copy_range(xs_seg *seg, int64_t start, int64_t width, xs_reason why)
{
    xs_seg *copy = xs_seg_new(seg->manager, start, width, seg->itemsize);
    if (copy && width) {
        xs_seg_read(seg, start, width, copy->block->data);
        copied(seg->manager, why, seg_bytes(copy));
    }
    return copy;
}

static xs_seg *share_by_copy(xs_seg *seg)
{
    return copy_range(seg, seg->start, seg->width, XS_PASS);
}

static xs_seg *subseg_by_copy(xs_seg *seg, int64_t start, int64_t width)
{
    return copy_range(seg, start, width, XS_SUBSEG);
}

static xs_seg *append_by_copy(xs_seg *a, xs_seg *b) { return seg_joined(a, b, 0); }

static xs_seg *share_by_count(xs_seg *seg) { return xs_seg_ref(seg); }

static xs_seg *subseg_by_count(xs_seg *seg, int64_t start, int64_t width)
{
    xs_block *block = width ? block_ref(seg->block) : NULL;
    int64_t offset = seg->offset + (start - seg->start) * seg->itemsize;
    return seg_of_block(seg->manager, start, width, seg->itemsize, block, offset);
}

/* The owner of a block's end extends it; a block that somebody looks into must stay where it is,
 * and one whose end somebody else already extended cannot be extended again. Both are copied, with
 * room to grow. */
static xs_seg *append_by_realloc(xs_seg *a, xs_seg *b)
{
    if (!a->width) return xs_seg_ref(b);
    if (!b->width) return xs_seg_ref(a);
    xs_block *block = a->block;
    int64_t end = a->offset + seg_bytes(a), added = seg_bytes(b);
    int64_t needed = end + added, roomy = needed + needed / 2;
    bool extended = false, short_of_memory = false;
    const char *source = block_pin(b->block) + b->offset;
    int64_t pins = 0;
    if (atomic_compare_exchange_strong_explicit(&block->pins, &pins, MOVING, memory_order_acquire,
                                                memory_order_relaxed)) {
        if (block->used == end) {
            short_of_memory = needed > block->capacity && !block_grow(block, roomy);
            if (!short_of_memory) {
                memcpy(block->data + end, source, (size_t)added);
                block->used = needed;
                extended = true;
            }
        }
        atomic_store_explicit(&block->pins, 0, memory_order_release);
    } else {
        count_add(&a->manager->pinned_copies, 1);
    }
    block_unpin(b->block);
    if (extended) {
        copied(a->manager, XS_APPEND, added);
        return seg_widened(a, a->width + b->width);
    }
    if (short_of_memory) return NULL;
    int64_t joined = seg_bytes(a) + added;
    return seg_joined(a, b, joined + joined / 2);
}

static xs_seg *append_counted(xs_seg *a, xs_seg *b)
{
    if (!a->width) return xs_seg_ref(b);
    if (!b->width) return xs_seg_ref(a);
    return seg_joined(a, b, 0);
}

const xs_kind_table xs_copy_always = {share_by_copy, append_by_copy, subseg_by_copy};
const xs_kind_table xs_refcount_copy = {share_by_count, append_counted, subseg_by_count};
const xs_kind_table xs_refcount_realloc = {share_by_count, append_by_realloc, subseg_by_count};
