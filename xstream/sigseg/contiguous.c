/* copy-always, refcount-copy and refcount-realloc, which keep every segment in one block. They
 * differ in the cost of passing, cutting and appending. */
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

/* Copies the bytes of `b` after those of `a`, into the block of `a`, which the caller made MOVING. */
static bool extend_block(xs_block *block, int64_t end, const char *source, int64_t added)
{
    int64_t needed = end + added;
    if (needed > block->capacity && !block_grow(block, needed + needed / 2) &&
        !block_grow(block, needed))
        return false;
    memcpy(block->data + end, source, (size_t)added);
    block->used = needed;
    return true;
}

/* The segment at the end of a block extends it in place. Three kinds of blocks are copied instead,
 * with room to grow: a pinned block, which must not move; a block that another segment has extended;
 * and a block that has to grow while most of it lies before `a`, because it would grow forever. */
static xs_seg *append_by_realloc(xs_seg *a, xs_seg *b)
{
    if (!a->width) return xs_seg_ref(b);
    if (!b->width) return xs_seg_ref(a);
    xs_block *block = a->block;
    int64_t end = a->offset + seg_bytes(a), added = seg_bytes(b), joined = seg_bytes(a) + added;
    if (b->block == block && b->offset == end) /* `b` follows `a` in memory already */
        return seg_widened(a, a->width + b->width);
    enum { COPY, EXTENDED, NO_MEMORY } outcome = COPY;
    if (b->block != block) {
        const char *source = block_pin(b->block) + b->offset;
        int64_t pins = 0;
        if (atomic_compare_exchange_strong_explicit(&block->pins, &pins, MOVING,
                                                    memory_order_acquire, memory_order_relaxed)) {
            bool hidden = end + added > block->capacity && a->offset > joined;
            if (block->used == end && !hidden)
                outcome = extend_block(block, end, source, added) ? EXTENDED : NO_MEMORY;
            atomic_store_explicit(&block->pins, 0, memory_order_release);
        } else {
            TALLY_ADD(a->manager, pinned_copies, 1);
        }
        block_unpin(b->block);
    }
    if (outcome == COPY) return seg_joined(a, b, joined + joined / 2);
    if (outcome == NO_MEMORY) return NULL;
    copied(a->manager, XS_APPEND, added);
    return seg_widened(a, a->width + b->width);
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
