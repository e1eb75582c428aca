/* The private definitions of this room. */
#ifndef XS_SIGSEG_INTERNAL_H
#define XS_SIGSEG_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sigseg.h"

/* Counts are atomic. XS_PLAIN_COUNTS makes them plain, so that tests/native/test_stress.py can show
 * that its stress test detects that; nothing else defines it. */
#ifdef XS_PLAIN_COUNTS
typedef int64_t xs_count;
static inline int64_t count_add(xs_count *count, int64_t n) { int64_t old = *count; *count = old + n; return old; }
static inline int64_t count_get(xs_count *count) { return *count; }
static inline bool count_swap(xs_count *count, int64_t *before, int64_t after)
{
    (void)before;
    *count = after;
    return true;
}
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
/* Sets the count if it is still *before; otherwise reads it into *before. */
static inline bool count_swap(xs_count *count, int64_t *before, int64_t after)
{
    return atomic_compare_exchange_weak_explicit(count, before, after, memory_order_relaxed,
                                                 memory_order_relaxed);
}
#endif

/* Of a count that only the calling thread writes to: readers see it whole, and no bus is locked. */
static inline void count_add_own(xs_count *count, int64_t n)
{
#ifdef XS_PLAIN_COUNTS
    *count += n;
#else
    int64_t old = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, old + n, memory_order_relaxed);
#endif
}

/* Of something that nobody else knows yet. */
static inline void count_start(xs_count *count)
{
#ifdef XS_PLAIN_COUNTS
    *count = 1;
#else
    atomic_store_explicit(count, 1, memory_order_relaxed);
#endif
}

/* A count of one is the caller's own; all writes of former holders are visible to it. */
static inline bool count_is_one(const xs_count *refs)
{
#ifdef XS_PLAIN_COUNTS
    return *refs == 1;
#else
    return atomic_load_explicit((xs_count *)refs, memory_order_acquire) == 1;
#endif
}

/* True if this released the last count; all writes of the other holders are visible then. */
static inline bool count_release(xs_count *refs)
{
#ifdef XS_PLAIN_COUNTS
    return count_add(refs, -1) == 1;
#else
    /* With a count of one, nobody else can take a count: no atomic subtraction is needed. */
    if (count_is_one(refs)) return true;
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
#endif
}

typedef struct xs_kind_table {
    xs_seg *(*share)(xs_seg *seg);
    xs_seg *(*append)(xs_seg *a, xs_seg *b);
    xs_seg *(*subseg)(xs_seg *seg, int64_t start, int64_t width);
} xs_kind_table;

/* What was done, as counted by one thread, or by all that have no tally of their own. Only the shared
 * tally needs atomic additions, which take longer than most of what is counted. */
typedef struct {
    _Alignas(64) xs_count refs; /* of the manager; see tally.c */
    xs_count live_blocks, unbooked; /* bytes that the manager's live_bytes do not have yet */
    xs_count allocations, reallocations, moved_reallocations, pinned_copies;
    xs_count shares, appends, subsegs, materialisations, edits;
    xs_count bytes_copied[XS_REASONS];
    xs_count timed_calls, timed_ticks;
} xs_tally;

enum { TALLIES = 16 };

struct xs_manager {
    const xs_kind_table *table;
    xs_kind kind;
    int64_t limit_bytes;
    bool profiled;
    xs_count live_bytes, peak_bytes;
    int64_t began_ns, began_ticks, empty_ticks; /* start of profiling; cost of an empty measurement */
    double ns_per_tick; /* 0 until ticks are first converted */
    pthread_mutex_t folding; /* guards `taken`, and that a reader finds every count in one place */
    uint32_t taken;          /* tallies that belong to a thread, by bit */
    xs_tally tally[TALLIES]; /* the first one is shared; its refs count the handle, plans, segments
                              * and blocks */
};

/* The tally that belongs to this thread alone, while it runs a plan. */
typedef struct xs_own_tally {
    xs_manager *manager; /* NULL: none */
    xs_tally *tally;
} xs_own_tally;
extern _Thread_local xs_own_tally own_tally __attribute__((tls_model("initial-exec")));

static inline xs_tally *tally_of(xs_manager *manager)
{
    return manager == own_tally.manager ? own_tally.tally : &manager->tally[0];
}

/* Adds to a counter of the tally that the calling thread counts in. */
#define TALLY_ADD(of, counter, n)                                                        \
    do {                                                                                 \
        if ((of) == own_tally.manager) count_add_own(&own_tally.tally->counter, n);      \
        else count_add(&(of)->tally[0].counter, n);                                      \
    } while (0)

/* A count on the manager, for a segment or a block. */
static inline void manager_hold(xs_manager *manager) { TALLY_ADD(manager, refs, 1); }
static inline void manager_unhold(xs_manager *manager)
{
    if (manager == own_tally.manager) count_add_own(&own_tally.tally->refs, -1);
    else xs_manager_drop(manager);
}

/* Between the two the calling thread has a tally of its own, if one is free; a thread that runs another
 * plan meanwhile gets back the one that it had. */
xs_own_tally tally_take(xs_manager *manager);
void tally_return(xs_own_tally before);

/* tally.c */
bool book_bytes(xs_manager *manager, int64_t bytes); /* false: this would exceed the limit */
void unbook_bytes(xs_manager *manager, int64_t bytes);
void note_peak(xs_manager *manager); /* after an allocation */

/* A buffer. With refcount-realloc it may grow and move while it is not pinned. */
struct xs_block {
    xs_count refs;
    _Atomic int64_t pins; /* number of readers; MOVING while it moves */
    xs_manager *manager;
    char *data;
    int64_t capacity; /* bytes */
    int64_t used;     /* bytes in use; a segment that ends here may extend the block */
    void (*release)(void *owner); /* set for foreign memory, which is only read; else NULL */
    void *owner;
};
#define MOVING (-1)

/* A range of one block inside a list; it ends where the next one starts. */
typedef struct {
    xs_block *block;
    char *data;
    int64_t start;
} xs_piece;

/* Pieces in order of time. Slots below `used` are taken and never change. A segment takes the next
 * slots by compare-and-swap, and only segments derived from it read them. */
typedef struct {
    xs_count refs;
    _Atomic int64_t used;
    int64_t capacity;
    xs_piece pieces[];
} xs_chunk;

/* Some pieces of a chunk. Capacities of chunks double, so a list has few runs. */
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
    _Atomic(xs_block *) flat; /* the contiguous copy, made on demand */
};

extern const xs_kind_table xs_copy_always, xs_refcount_copy, xs_refcount_realloc, xs_refcount_lazy;

/* Indices lie in [-INDEX_END, INDEX_END], so that sums of an index and a few sizes do not overflow. */
#define INDEX_END ((int64_t)1 << 62)
/* No segment has more bytes, so that sums of a few sizes in bytes do not overflow. */
#define MOST_BYTES (INT64_MAX / 4)
static inline bool indices_fit(int64_t start, int64_t width)
{
    return width >= 0 && width <= INDEX_END && start >= -INDEX_END && start <= INDEX_END - width;
}

static inline int64_t seg_stop(const xs_seg *seg) { return seg->start + seg->width; }
static inline int64_t seg_bytes(const xs_seg *seg) { return seg->width * seg->itemsize; }

/* Whether freed memory is kept for reuse. Sanitized builds keep none, or a use after free would go
 * unnoticed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPING = 0 };
#else
enum { KEEPING = 1 };
#endif

/* spares.c: memory that this thread freed lately */
xs_seg *spare_seg_take(void); /* or new memory; NULL without any */
void spare_seg_keep(xs_seg *seg);
xs_block *spare_block_take(int64_t capacity); /* NULL: there is none */
void spare_block_keep(xs_block *block); /* without users, with its data behind it */

/* block.c */
/* `beside`: what its data is made from, or NULL; see placed(). */
xs_block *block_new(xs_manager *manager, int64_t bytes, int64_t capacity, const void *beside);
/* A block over foreign memory, which is released after its last segment. */
xs_block *block_foreign(xs_manager *manager, const void *data, int64_t booked,
                        void (*release)(void *owner), void *owner);
/* Whether the low bits of an address are close to those of what its data is made from; see placed(). */
static inline bool block_is_near(const char *data, const void *beside)
{
    enum { NEAR = 512, LOW_BITS = 4095 };
    return beside && (((uintptr_t)data - (uintptr_t)beside + NEAR) & LOW_BITS) < 2 * NEAR;
}
bool block_grow(xs_block *block, int64_t capacity); /* only while MOVING */
void block_drop(xs_block *block);
char *block_pin(xs_block *block); /* waits while the block moves */
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
#define STREAMING_BYTES (8 << 20) /* larger copies bypass the caches */
void copy_streaming(char *restrict to, const char *restrict from, size_t bytes);
void copy_streaming_end(void); /* after the last piece */

/* segment.c */
xs_seg *seg_of_block(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                     xs_block *block, int64_t offset); /* takes over the count on block */
xs_seg *seg_widened(xs_seg *seg, int64_t width);  /* the same range or list, with another width */
/* Both copied into one new block, with room for `capacity` bytes if memory allows. */
xs_seg *seg_joined(xs_seg *a, xs_seg *b, int64_t capacity);

/* An operator that makes one segment after another can set one that it alone owns aside, with its
 * block, and use it again. It does not count as live meanwhile. Not in profiled runs, nor under a limit,
 * nor by a thread without a tally of its own: false, and the segment is dropped as usual. */
static inline bool seg_set_aside(xs_seg *seg)
{
    xs_manager *manager = seg->manager;
    xs_block *block = seg->block;
    if (!KEEPING || manager != own_tally.manager || manager->limit_bytes != INT64_MAX ||
        manager->profiled || manager->kind == XS_REFCOUNT_REALLOC)
        return false;
    if (!count_is_one(&seg->refs) || !block || block->release || !count_is_one(&block->refs) ||
        seg->offset || block->capacity != seg_bytes(seg))
        return false;
    count_add_own(&own_tally.tally->refs, -2);
    count_add_own(&own_tally.tally->live_blocks, -1);
    count_add_own(&own_tally.tally->unbooked, -block->capacity);
    return true;
}

/* Uses a segment that was set aside as a new one; false if it does not fit. */
static inline bool seg_take_up(xs_seg *seg, xs_manager *manager, int64_t start, int64_t width,
                               const void *beside)
{
    xs_block *block = seg->block;
    if (manager != own_tally.manager || seg->width != width || block_is_near(block->data, beside))
        return false;
    count_add_own(&own_tally.tally->refs, 2);
    count_add_own(&own_tally.tally->live_blocks, 1);
    count_add_own(&own_tally.tally->allocations, 1);
    count_add_own(&own_tally.tally->unbooked, block->capacity);
    note_peak(manager);
    block->used = block->capacity;
    seg->start = start;
    return true;
}

static inline void seg_free_aside(xs_seg *seg)
{
    spare_block_keep(seg->block);
    spare_seg_keep(seg);
}

/* Counts on the segments of the tuple that this thread's operator processes, which nobody uses after it:
 * xs_seg_edit_own may take them. `slots` are the fields of the tuple, `segments` those with a segment, by
 * bit. */
typedef struct {
    xs_seg **slots;
    uint64_t segments;
} xs_lent;
extern _Thread_local xs_lent lent_segments;

/* lazy.c */
typedef struct {
    const xs_seg *seg;
    int64_t run, position, next, stop; /* `next`: the first sample of the next range */
} xs_walk;
void walk_begin(xs_walk *walk, const xs_seg *seg, int64_t start, int64_t stop);
/* Returns the next range, clipped; false at the end. */
bool walk_next(xs_walk *walk, xs_piece *piece, int64_t *width);
void spine_drop(xs_spine *spine);
bool spine_trim(xs_seg *seg, int64_t start); /* in place; false where others see the list */
int64_t spine_find_piece(const xs_seg *seg, int64_t number, xs_piece *piece);
#endif
