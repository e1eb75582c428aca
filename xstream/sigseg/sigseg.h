/* Signal segments and their memory managers: the interface of the lowest layer.
 *
 * One header for C and for cffi, which skips the preprocessor lines. A segment is a reference-counted,
 * immutable window [start, start + width) of a signal. Its manager decides how its samples are
 * stored, and the cost of passing, joining and cutting it (XStream, ICDE 2008, section III.B).
 * A function that returns a segment returns a new count on it, or NULL if memory ran out; callers
 * check ranges first. Any function may be called from any thread.
 */
#ifndef XS_SIGSEG_H
#define XS_SIGSEG_H
#include <stdint.h>

typedef struct xs_manager xs_manager;
typedef struct xs_block xs_block;
typedef struct xs_seg xs_seg;

typedef enum { XS_COPY_ALWAYS, XS_REFCOUNT_COPY, XS_REFCOUNT_REALLOC, XS_REFCOUNT_LAZY } xs_kind;

/* Reasons for copies. */
typedef enum { XS_PASS, XS_APPEND, XS_SUBSEG, XS_MATERIALISE, XS_EDIT, XS_REASONS } xs_reason;

typedef struct {
    int64_t live_segments, live_blocks, live_bytes, peak_bytes;
    int64_t allocations, reallocations, moved_reallocations, pinned_copies;
    int64_t shares, appends, subsegs, materialisations, edits;
    int64_t bytes_copied[5]; /* by xs_reason */
} xs_counters;

/* limit_bytes limits the total size of its blocks; INT64_MAX means no limit. */
xs_manager *xs_manager_new(xs_kind kind, int64_t limit_bytes);
void xs_manager_drop(xs_manager *manager); /* it is freed after its last segment */
void xs_manager_counters(xs_manager *manager, xs_counters *out);
/* From now on every call of the manager is timed: creating, passing, joining, cutting, freeing and
 * materialising. A call takes about ten nanoseconds longer. */
void xs_manager_profile(xs_manager *manager);
typedef struct {
    int64_t calls, ns; /* without the cost of timing */
} xs_spent;
void xs_manager_spent(xs_manager *manager, xs_spent *out);

/* A segment of uninitialised samples in one block, to be filled through xs_seg_own_data before it is
 * shared. */
xs_seg *xs_seg_new(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize);
/* The same, whose samples are to be made from those at `beside`: they lie where that is fastest. */
xs_seg *xs_seg_new_beside(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                          const void *beside);
void *xs_seg_own_data(xs_seg *seg);

/* A segment over memory that belongs to somebody else and is only read. `release(owner)` is called
 * once, by whichever thread drops the last segment of it, and at once where NULL is returned. `booked`
 * bytes count as the manager's (0 for a mapped file). */
xs_seg *xs_seg_foreign(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                       const void *data, int64_t booked, void (*release)(void *owner), void *owner);

int64_t xs_seg_start(const xs_seg *seg);
int64_t xs_seg_width(const xs_seg *seg);
int64_t xs_seg_pieces(const xs_seg *seg); /* number of contiguous ranges */

xs_seg *xs_seg_ref(xs_seg *seg);   /* another count on the same segment */
xs_seg *xs_seg_share(xs_seg *seg); /* passes to an operator: copies with copy-always */
void xs_seg_drop(xs_seg *seg);

xs_seg *xs_seg_append(xs_seg *a, xs_seg *b); /* needs a.stop == b.start, one kind, one itemsize */
xs_seg *xs_seg_subseg(xs_seg *seg, int64_t start, int64_t width); /* needs a range inside seg */
/* The samples of `seg` from `start` on; takes over the count on `seg`. Where nobody else has one, the
 * blocks in front are given back at once. */
xs_seg *xs_seg_trim(xs_seg *seg, int64_t start);
xs_seg *xs_seg_edit(xs_seg *seg); /* a private copy in one block, for xs_seg_own_data */
/* For writing: the segment itself where nobody else can see its samples, else a private copy. Takes over
 * the count on `seg`, unless memory ran out. */
xs_seg *xs_seg_edit_own(xs_seg *seg);
/* Whether the caller has the only count on the segment and on its block, and may write to it. */
int xs_seg_is_own(const xs_seg *seg);

/* The samples in one range; makes and keeps a contiguous copy if needed. *hold pins the memory until
 * xs_block_unhold. NULL if memory ran out; a null segment has no samples. */
const void *xs_seg_hold(xs_seg *seg, xs_block **hold);
int xs_seg_is_flat(const xs_seg *seg); /* whether xs_seg_hold needs no copy */
/* The samples of piece number `piece`, their number, and a hold on them. */
const void *xs_seg_hold_piece(xs_seg *seg, int64_t piece, int64_t *width, xs_block **hold);
void xs_block_unhold(xs_block *hold);
/* Both of these are finalisers of Python buffers over `data`, which is in the memory of the owner. */
void xs_block_unhold_data(xs_block *hold, void *data);
void xs_seg_drop_data(xs_seg *seg, void *data);
/* Copies samples [start, start + width) to `out` without making them contiguous first. */
void xs_seg_read(xs_seg *seg, int64_t start, int64_t width, void *out);
/* Grows an accumulator piece by piece, for benchmarks: appends `count` segments of `piece` samples to
 * *accumulator and, if keep > 0, trims its front to `keep` samples. Returns the nanoseconds, or -1 if
 * memory ran out. */
int64_t xs_seg_time_appends(xs_seg **accumulator, int64_t count, int64_t piece, int64_t keep);

#endif
