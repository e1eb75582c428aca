/* What the files of the core know of segments and nobody else does. */
#ifndef XS_SIGSEG_INTERNAL_H
#define XS_SIGSEG_INTERNAL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sigseg.h"

/* Counts are atomic. A build with XS_PLAIN_COUNTS makes them plain, to show that the thread stress
 * notices (tests/native/test_stress.py); nothing else defines it. */
#ifdef XS_PLAIN_COUNTS
typedef int64_t xs_count;
static inline int64_t count_add(xs_count *count, int64_t n) { int64_t old = *count; *count = old + n; return old; }
static inline int64_t count_get(xs_count *count) { return *count; }
#else
typedef _Atomic int64_t xs_count;
static inline int64_t count_add(xs_count *count, int64_t n)
{
    return atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}
static inline int64_t count_get(xs_count *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}
#endif

/* A count of one is the asker's own: everything that former holders did is visible to it. */
static inline bool count_is_one(const xs_count *refs)
{
#ifdef XS_PLAIN_COUNTS
    return *refs == 1;
#else
    return atomic_load_explicit((xs_count *)refs, memory_order_acquire) == 1;
#endif
}

/* True for the one who gave up the last count: everything the others did is visible to it. */
static inline bool count_release(xs_count *refs)
{
#ifdef XS_PLAIN_COUNTS
    return count_add(refs, -1) == 1;
#else
    /* Alone already: nobody else can take a count, so a plain look saves the locked subtraction. */
    if (count_is_one(refs)) return true;
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
#endif
}

typedef struct xs_kind_table {
    xs_seg *(*share)(xs_seg *seg);
    xs_seg *(*append)(xs_seg *a, xs_seg *b);
    xs_seg *(*subseg)(xs_seg *seg, int64_t start, int64_t width);
} xs_kind_table;

struct xs_manager {
    const xs_kind_table *table;
    xs_kind kind;
    int64_t limit_bytes;
    xs_count refs; /* the handle, every segment and every block */
    xs_count live_blocks, live_bytes, peak_bytes;
    xs_count allocations, reallocations, moved_reallocations, pinned_copies;
    xs_count shares, appends, subsegs, materialisations, edits;
    xs_count bytes_copied[XS_REASONS];
    bool profiled;
    xs_count timed_calls, timed_ticks;
    int64_t began_ns, began_ticks, empty_ticks; /* when profiling did; what timing nothing takes */
};

/* A buffer. Under refcount-realloc it may grow and move while nobody looks into it. */
struct xs_block {
    xs_count refs;
    _Atomic int64_t pins; /* how many look into it; MOVING while it moves */
    xs_manager *manager;
    char *data;
    int64_t capacity; /* bytes */
    int64_t used;     /* bytes that some segment shows; whoever ends here may extend */
    void (*release)(void *owner); /* memory of somebody else, only ever read; NULL: the block's own */
    void *owner;
};
#define MOVING (-1)

/* A range of one block inside a list; it ends where the next one starts. */
typedef struct {
    xs_block *block;
    char *data;
    int64_t start;
} xs_piece;

/* Pieces in order of time. Slots below `used` are taken for good; whoever takes the next ones by
 * compare-and-swap owns them, and only segments made from that owner ever look at them. */
typedef struct {
    xs_count refs;
    _Atomic int64_t used;
    int64_t capacity;
    xs_piece pieces[];
} xs_chunk;

/* Some pieces of a chunk, in a list of chunks whose capacities double: few, however many pieces. */
typedef struct {
    xs_chunk *chunk;
    int64_t first, end;
} xs_run;

typedef struct {
    xs_count refs;
    int64_t runs;
    xs_run run[];
} xs_spine;

struct xs_seg {
    xs_count refs;
    xs_manager *manager;
    int64_t start, width, itemsize;
    /* One range: */
    xs_block *block; /* NULL in a list, and in a null segment */
    int64_t offset;  /* bytes */
    /* or a list (refcount-lazy): the spine's runs, from `head` in the first to `tail` in the last */
    xs_spine *spine;
    int64_t head, tail, pieces;
    _Atomic(xs_block *) flat; /* the contiguous copy, once somebody asked for it */
};

extern const xs_kind_table xs_copy_always, xs_refcount_copy, xs_refcount_realloc, xs_refcount_lazy;

/* Indices lie in [-INDEX_END, INDEX_END], so that sums of an index and a few sizes do not overflow. */
#define INDEX_END ((int64_t)1 << 62)
static inline bool indices_fit(int64_t start, int64_t width)
{
    return width >= 0 && width <= INDEX_END && start >= -INDEX_END && start <= INDEX_END - width;
}

static inline int64_t seg_stop(const xs_seg *seg) { return seg->start + seg->width; }
static inline int64_t seg_bytes(const xs_seg *seg) { return seg->width * seg->itemsize; }

/* block.c */
xs_block *block_new(xs_manager *manager, int64_t bytes, int64_t capacity);
/* Over the memory of somebody else, which is released when the last segment of it has gone. */
xs_block *block_foreign(xs_manager *manager, const void *data, int64_t booked,
                        void (*release)(void *owner), void *owner);
bool block_grow(xs_block *block, int64_t capacity); /* only while MOVING */
void block_drop(xs_block *block);
char *block_pin(xs_block *block); /* waits out a move */
void block_unpin(xs_block *block);
static inline xs_block *block_ref(xs_block *block)
{
    count_add(&block->refs, 1);
    return block;
}
void copied(xs_manager *manager, xs_reason why, int64_t bytes);

/* profile.c: time spent in a manager, from the outermost call of this thread */
int64_t profile_enter(void);
void profile_leave(xs_manager *manager, int64_t entered);
int64_t profile_ticks(xs_manager *manager); /* so far, in units of the processor's counter */
int64_t profile_ns(xs_manager *manager, int64_t ticks);
static inline int64_t profile_begin(const xs_manager *manager)
{
    return __builtin_expect(manager->profiled, 0) ? profile_enter() : 0;
}
static inline void profile_end(xs_manager *manager, int64_t begun)
{
    if (__builtin_expect(begun != 0, 0)) profile_leave(manager, begun);
}

/* stream_copy.c */
#define STREAMING_BYTES (8 << 20) /* more than a copy should push out of the caches */
void copy_streaming(char *restrict to, const char *restrict from, size_t bytes);
void copy_streaming_end(void); /* after the last piece */

/* segment.c */
xs_seg *seg_of_block(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                     xs_block *block, int64_t offset); /* takes over the count on block */
xs_seg *seg_widened(xs_seg *seg, int64_t width);  /* the same range or list, with another width */
/* Both copied into one new block, with room to grow to `capacity` where that can be had. */
xs_seg *seg_joined(xs_seg *a, xs_seg *b, int64_t capacity);

/* lazy.c */
typedef struct {
    const xs_seg *seg;
    int64_t run, position, next, stop; /* `next`: the sample that the coming range starts with */
} xs_walk;
void walk_begin(xs_walk *walk, const xs_seg *seg, int64_t start, int64_t stop);
/* The coming range, clipped; false at the end. */
bool walk_next(xs_walk *walk, xs_piece *piece, int64_t *width);
void spine_drop(xs_spine *spine);
bool spine_trim(xs_seg *seg, int64_t start); /* in place; false where others see the list */
int64_t spine_find_piece(const xs_seg *seg, int64_t number, xs_piece *piece);
#endif
