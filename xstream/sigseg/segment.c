/* Operations of segments that are the same for all managers. */
#include <time.h>

#include "internal.h"

xs_seg *seg_of_block(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                     xs_block *block, int64_t offset)
{
    xs_seg *seg = spare_seg_take();
    if (!seg) {
        if (block) block_drop(block);
        return NULL;
    }
    /* Field by field: the compiler zeroes a whole struct by an instruction that is slow to start. */
    count_start(&seg->refs);
    seg->manager = manager;
    seg->start = start;
    seg->width = width;
    seg->itemsize = itemsize;
    seg->block = block;
    seg->offset = offset;
    seg->spine = NULL;
    seg->head = seg->tail = 0;
    seg->pieces = block != NULL;
    atomic_store_explicit(&seg->flat, NULL, memory_order_relaxed);
    manager_hold(manager);
    return seg;
}

xs_seg *xs_seg_new(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize)
{
    return xs_seg_new_beside(manager, start, width, itemsize, NULL);
}

xs_seg *xs_seg_new_beside(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                          const void *beside)
{
    int64_t bytes;
    if (width < 0 || __builtin_mul_overflow(width, itemsize, &bytes) || bytes > MOST_BYTES)
        return NULL;
    int64_t begun = profile_begin(manager);
    xs_block *block = bytes ? block_new(manager, bytes, bytes, beside) : NULL;
    xs_seg *seg = !bytes || block ? seg_of_block(manager, start, width, itemsize, block, 0) : NULL;
    profile_end(manager, begun);
    return seg;
}

xs_seg *xs_seg_foreign(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                       const void *data, int64_t booked, void (*release)(void *owner), void *owner)
{
    int64_t bytes;
    bool fits = !__builtin_mul_overflow(width, itemsize, &bytes) && bytes <= MOST_BYTES;
    xs_block *block = width && fits ? block_foreign(manager, data, booked, release, owner) : NULL;
    if (!block) release(owner);
    return !width || block ? seg_of_block(manager, start, width, itemsize, block, 0) : NULL;
}

void *xs_seg_own_data(xs_seg *seg) { return seg->block ? seg->block->data + seg->offset : NULL; }

int xs_seg_is_own(const xs_seg *seg)
{
    return count_is_one(&seg->refs) && seg->block && !seg->block->release &&
           count_is_one(&seg->block->refs);
}

int64_t xs_seg_start(const xs_seg *seg) { return seg->start; }
int64_t xs_seg_width(const xs_seg *seg) { return seg->width; }
int64_t xs_seg_pieces(const xs_seg *seg) { return seg->pieces; }

xs_seg *xs_seg_ref(xs_seg *seg)
{
    count_add(&seg->refs, 1);
    return seg;
}

void xs_seg_drop(xs_seg *seg)
{
    if (!count_release(&seg->refs)) return;
    xs_manager *manager = seg->manager;
    int64_t begun = profile_begin(manager);
    if (seg->block) block_drop(seg->block);
    if (seg->spine) spine_drop(seg->spine);
    xs_block *flat = atomic_load_explicit(&seg->flat, memory_order_acquire);
    if (flat) block_drop(flat);
    spare_seg_keep(seg);
    profile_end(manager, begun);
    manager_unhold(manager);
}

void xs_seg_drop_data(xs_seg *seg, void *data)
{
    (void)data;
    xs_seg_drop(seg);
}

xs_seg *xs_seg_share(xs_seg *seg)
{
    xs_manager *manager = seg->manager;
    TALLY_ADD(manager, shares, 1);
    int64_t begun = profile_begin(manager);
    xs_seg *shared = manager->table->share(seg);
    profile_end(manager, begun);
    return shared;
}

xs_seg *xs_seg_append(xs_seg *a, xs_seg *b)
{
    xs_manager *manager = a->manager;
    /* A list of shared ranges can be larger than any memory. */
    if (seg_bytes(a) > MOST_BYTES - seg_bytes(b)) return NULL;
    TALLY_ADD(manager, appends, 1);
    int64_t begun = profile_begin(manager);
    xs_seg *joined = manager->table->append(a, b);
    profile_end(manager, begun);
    return joined;
}

xs_seg *xs_seg_subseg(xs_seg *seg, int64_t start, int64_t width)
{
    xs_manager *manager = seg->manager;
    TALLY_ADD(manager, subsegs, 1);
    int64_t begun = profile_begin(manager);
    xs_seg *cut = manager->table->subseg(seg, start, width);
    profile_end(manager, begun);
    return cut;
}

xs_seg *xs_seg_trim(xs_seg *seg, int64_t start)
{
    if (start <= seg->start) return seg;
    bool whole = start >= seg_stop(seg);
    if (!whole && seg->spine && spine_trim(seg, start)) {
        TALLY_ADD(seg->manager, subsegs, 1);
        return seg;
    }
    xs_seg *rest = xs_seg_subseg(seg, start, whole ? 0 : seg_stop(seg) - start);
    xs_seg_drop(seg);
    return rest;
}

xs_seg *seg_widened(xs_seg *seg, int64_t width)
{
    xs_seg *wide = seg_of_block(seg->manager, seg->start, width, seg->itemsize,
                                seg->block ? block_ref(seg->block) : NULL, seg->offset);
    if (wide && seg->spine) {
        count_add(&seg->spine->refs, 1);
        wide->spine = seg->spine;
        wide->head = seg->head;
        wide->tail = seg->tail;
        wide->pieces = seg->pieces;
    }
    return wide;
}

xs_seg *seg_joined(xs_seg *a, xs_seg *b, int64_t capacity)
{
    int64_t bytes = seg_bytes(a) + seg_bytes(b), start = a->width ? a->start : b->start;
    if (!bytes) return seg_of_block(a->manager, start, 0, a->itemsize, NULL, 0);
    xs_block *block = capacity > bytes ? block_new(a->manager, bytes, capacity, NULL) : NULL;
    if (!block) block = block_new(a->manager, bytes, bytes, NULL);
    if (!block) return NULL;
    xs_seg_read(a, a->start, a->width, block->data);
    xs_seg_read(b, b->start, b->width, block->data + seg_bytes(a));
    copied(a->manager, XS_APPEND, bytes);
    return seg_of_block(a->manager, start, a->width + b->width, a->itemsize, block, 0);
}

xs_seg *xs_seg_edit(xs_seg *seg)
{
    TALLY_ADD(seg->manager, edits, 1);
    xs_seg *copy = xs_seg_new(seg->manager, seg->start, seg->width, seg->itemsize);
    if (copy && copy->block) {
        xs_seg_read(seg, seg->start, seg->width, copy->block->data);
        copied(seg->manager, XS_EDIT, seg_bytes(seg));
    }
    return copy;
}

_Thread_local xs_lent lent_segments;

/* Takes the lent count on a segment, if no others are left than that one and the caller's. */
static void take_lent(xs_seg *seg)
{
    for (uint64_t left = lent_segments.segments; left; left &= left - 1) {
        xs_seg **slot = &lent_segments.slots[__builtin_ctzll(left)];
        if (*slot != seg || count_get(&seg->refs) != 2) continue;
        *slot = NULL;
        xs_seg_drop(seg);
        return;
    }
}

xs_seg *xs_seg_edit_own(xs_seg *seg)
{
    take_lent(seg);
    if (xs_seg_is_own(seg)) {
        TALLY_ADD(seg->manager, edits, 1);
        return seg;
    }
    xs_seg *copy = xs_seg_edit(seg);
    if (copy) xs_seg_drop(seg);
    return copy;
}

void xs_seg_read(xs_seg *seg, int64_t start, int64_t width, void *out)
{
    if (!width) return;
    if (seg->block) {
        const char *data = block_pin(seg->block) + seg->offset;
        memcpy(out, data + (start - seg->start) * seg->itemsize, (size_t)(width * seg->itemsize));
        block_unpin(seg->block);
        return;
    }
    xs_walk walk;
    xs_piece piece;
    int64_t samples;
    char *to = out;
    bool past_caches = width * seg->itemsize >= STREAMING_BYTES;
    walk_begin(&walk, seg, start, start + width);
    while (walk_next(&walk, &piece, &samples)) {
        size_t bytes = (size_t)(samples * seg->itemsize);
        if (past_caches) copy_streaming(to, piece.data, bytes);
        else memcpy(to, piece.data, bytes);
        to += bytes;
    }
    if (past_caches) copy_streaming_end();
}

int xs_seg_is_flat(const xs_seg *seg)
{
    return seg->pieces <= 1 || atomic_load_explicit(&((xs_seg *)seg)->flat, memory_order_acquire);
}

/* Two threads may both copy; the first copy is kept and the other one is freed. */
static xs_block *materialised(xs_seg *seg)
{
    xs_block *flat = atomic_load_explicit(&seg->flat, memory_order_acquire);
    if (flat) return flat;
    int64_t begun = profile_begin(seg->manager);
    xs_block *mine = block_new(seg->manager, seg_bytes(seg), seg_bytes(seg), NULL);
    if (mine) xs_seg_read(seg, seg->start, seg->width, mine->data);
    profile_end(seg->manager, begun);
    if (!mine) return NULL;
    TALLY_ADD(seg->manager, materialisations, 1);
    copied(seg->manager, XS_MATERIALISE, seg_bytes(seg));
    if (atomic_compare_exchange_strong_explicit(&seg->flat, &flat, mine, memory_order_acq_rel,
                                                memory_order_acquire))
        return mine;
    block_drop(mine);
    return flat;
}

const void *xs_seg_hold(xs_seg *seg, xs_block **hold)
{
    xs_block *block = seg->block ? seg->block : materialised(seg);
    if (!block) return NULL;
    *hold = block_ref(block);
    return block_pin(block) + (seg->block ? seg->offset : 0);
}

const void *xs_seg_hold_piece(xs_seg *seg, int64_t number, int64_t *width, xs_block **hold)
{
    if (seg->block) {
        *width = seg->width;
        return xs_seg_hold(seg, hold);
    }
    xs_piece piece;
    *width = spine_find_piece(seg, number, &piece);
    *hold = block_ref(piece.block); /* blocks of lists never move */
    return piece.data;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t xs_seg_time_appends(xs_seg **accumulator, int64_t count, int64_t piece, int64_t keep)
{
    enum { BATCH = 64 }; /* the pieces are created outside the measured time */
    int64_t spent = 0;
    while (count > 0) {
        xs_seg *fresh[BATCH];
        int64_t n = count < BATCH ? count : BATCH;
        xs_seg *grown = *accumulator;
        for (int64_t i = 0; i < n; i++) {
            fresh[i] = xs_seg_new(grown->manager, seg_stop(grown) + i * piece, piece, grown->itemsize);
            if (!fresh[i]) {
                while (i) xs_seg_drop(fresh[--i]);
                return -1;
            }
            memset(fresh[i]->block->data, 0, (size_t)seg_bytes(fresh[i]));
        }
        int64_t begin = now_ns(), i = 0;
        for (; i < n; i++) {
            xs_seg *next = xs_seg_append(grown, fresh[i]);
            if (!next) break;
            xs_seg_drop(grown);
            grown = next;
            if (keep && grown->width > keep) {
                next = xs_seg_subseg(grown, seg_stop(grown) - keep, keep);
                if (!next) break;
                xs_seg_drop(grown);
                grown = next;
            }
        }
        spent += now_ns() - begin;
        *accumulator = grown;
        for (int64_t j = 0; j < n; j++) xs_seg_drop(fresh[j]);
        if (i < n) return -1;
        count -= n;
    }
    return spent;
}
