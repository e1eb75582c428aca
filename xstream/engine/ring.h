/* The words of a ring (ring.c), and small segments in it. */
#ifndef XS_RING_H
#define XS_RING_H
#include "engine.h"

enum {
    WORDS = 16384, /* in a ring; a power of two */
    SMALL = 256,  /* bytes: segments up to this size are copied */
};

struct xs_ring {
    xs_plan *giver;
    xs_slot *word;
    bool by_value; /* small segments are copied */
    _Atomic int32_t abandoned;
    /* Used by the producer: */
    _Alignas(64) _Atomic int64_t tail;
    int64_t known_head; /* the last value read: at least this much is free */
    int64_t marked;     /* the tail after the last mark */
    _Atomic int64_t given_bytes; /* of samples, ever */
    int64_t known_taken;
    int64_t given_ns, known_taken_ns; /* of work that stand-ins could have done, ever; estimated */
    bool standing_in;   /* the producer does some of the consumer's work; */
    int64_t until_look_ns; /* of work before it looks again how much there is */
    /* Used by the consumer: */
    _Alignas(64) _Atomic int64_t head;
    int64_t known_tail, park_ns;
    _Atomic int64_t taken_bytes, taken_ns;
    /* For parked threads: */
    _Alignas(64) _Atomic int32_t giver_parked, taker_parked;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static inline xs_slot *word_at(xs_ring *ring, int64_t position)
{
    return &ring->word[position & (WORDS - 1)];
}

/* -- small segments ------------------------------------------------------------------------ */

/* Instead of its address, the word of a small segment has its width and itemsize, with the lowest bit
 * set. Its first index and its samples follow behind the words of the tuple, in the order of fields. */
enum { VALUE_BIT = 1, ITEMSIZE_AT = 1, WIDTH_AT = 32 };

/* Blocks of refcount-realloc may move, copies under copy-always are what is measured, and profiles show
 * what passing costs without threads. */
static inline bool passes_by_value(const xs_plan *giver)
{
    xs_kind kind = giver->manager->kind;
    return !giver->profiled && (kind == XS_REFCOUNT_LAZY || kind == XS_REFCOUNT_COPY);
}

static inline bool is_value(xs_slot word) { return word.i & VALUE_BIT; }

static inline int64_t value_words(int64_t bytes) { return 1 + (bytes + 7) / 8; }

/* The segments of a tuple that are passed by value, and the words that they take in addition. */
static inline uint64_t small_segments(const xs_ring *ring, const xs_slot *tuple, uint64_t segments,
                                      int64_t *words)
{
    uint64_t small = 0;
    for (uint64_t left = ring->by_value ? segments : 0; left; left &= left - 1) {
        const xs_seg *seg = tuple[__builtin_ctzll(left)].seg;
        if (!seg->block || !seg->width || seg_bytes(seg) > SMALL) continue;
        small |= left & -left;
        *words += value_words(seg_bytes(seg));
    }
    return small;
}

/* Writes a segment by value; returns the position behind it. */
static inline int64_t put_value(xs_ring *ring, int64_t at, xs_slot *word, const xs_seg *seg)
{
    int64_t bytes = seg_bytes(seg);
    const char *samples = seg->block->data + seg->offset;
    word->i = seg->width << WIDTH_AT | seg->itemsize << ITEMSIZE_AT | VALUE_BIT;
    word_at(ring, at++)->i = seg->start;
    copied(seg->manager, XS_PASS, bytes);
    for (; bytes >= 8; bytes -= 8, samples += 8) memcpy(word_at(ring, at++), samples, 8);
    if (bytes) memcpy(word_at(ring, at++), samples, (size_t)bytes);
    return at;
}

/* Makes the segment of a value, or NULL without memory; returns the position behind it. */
static inline int64_t take_value(xs_ring *ring, int64_t at, xs_slot word, xs_seg **made)
{
    int64_t width = word.i >> WIDTH_AT;
    int64_t itemsize = (word.i & (((int64_t)1 << WIDTH_AT) - 1)) >> ITEMSIZE_AT;
    int64_t bytes = width * itemsize, end = at + value_words(bytes);
    xs_seg *seg = *made = xs_seg_new(ring->giver->manager, word_at(ring, at++)->i, width, itemsize);
    if (unlikely(!seg)) return end;
    char *samples = seg->block->data;
    for (; bytes >= 8; bytes -= 8, samples += 8) memcpy(samples, word_at(ring, at++), 8);
    if (bytes) memcpy(samples, word_at(ring, at), (size_t)bytes);
    return end;
}
#endif
