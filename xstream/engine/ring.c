/* Rings: pass tuples from a part of a plan to the next, which another thread runs.
 *
 * An entry is the input port, or the fan of several ports, that a tuple is for and the tuple's slots,
 * with counts on its segments; or a mark. Only the producer writes `tail`, and only the consumer writes `head`, so passing a tuple
 * takes no lock. A thread that finds the ring full or empty polls for a moment and then parks.
 *
 * A parked consumer is not woken by every tuple, because a system call costs more than many small
 * operators. It is woken when the ring holds many tuples or the producer is about to pause, and it
 * also wakes up by itself, after intervals that grow.
 */
#include <pthread.h>
#include <time.h>

#include "engine.h"

enum {
    WORDS = 8192,  /* in a ring; a power of two */
    PLENTY = 256,  /* words: the consumer is busy for a while */
    MUCH = 2048,   /* words, or PLENTY of MUCH_BYTES: the producer begins to do some of its work */
    MUCH_BYTES = 1 << 20,
    LOOK_EVERY = 8, /* tuples */
    WAKE = 2048,   /* words: enough to wake the consumer */
    BYTES = 32 << 20, /* of samples in a ring; one entry may have more */
    MARKS = 8,     /* a first word below this is a mark */
    LOOKS = 64,    /* at an empty or full ring before parking: some microseconds */
    PARK_MIN_NS = 100000,
    PARK_MAX_NS = 10000000,
};

struct xs_ring {
    xs_plan *giver;
    xs_slot *word;
    _Atomic int32_t abandoned;
    /* Used by the producer: */
    _Alignas(64) _Atomic int64_t tail;
    int64_t known_head; /* the last value read: at least this much is free */
    int64_t marked;     /* the tail after the last mark */
    _Atomic int64_t given_bytes; /* of samples, ever */
    int64_t known_taken;
    bool standing_in;   /* the producer does some of the consumer's work; */
    int32_t until_look; /* so many tuples before it looks again how much there is */
    /* Used by the consumer: */
    _Alignas(64) _Atomic int64_t head;
    int64_t known_tail, park_ns;
    _Atomic int64_t taken_bytes;
    /* For parked threads: */
    _Alignas(64) _Atomic int32_t giver_parked, taker_parked;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

xs_ring *ring_new(xs_plan *giver)
{
    xs_ring *ring = aligned_alloc(64, (sizeof *ring + 63) / 64 * 64);
    if (!ring) return NULL;
    memset(ring, 0, sizeof *ring);
    ring->word = malloc(WORDS * sizeof *ring->word);
    if (!ring->word) {
        free(ring);
        return NULL;
    }
    ring->giver = giver;
    ring->park_ns = PARK_MIN_NS;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return ring;
}

/* -- parking ------------------------------------------------------------------------------- */

static inline void look_again(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static int64_t used_words(xs_ring *ring)
{
    return atomic_load_explicit(&ring->tail, memory_order_acquire) -
           atomic_load_explicit(&ring->head, memory_order_acquire);
}

/* The other side reads these totals only when it is about to wait. */
static int64_t used_bytes(xs_ring *ring)
{
    return atomic_load_explicit(&ring->given_bytes, memory_order_acquire) -
           atomic_load_explicit(&ring->taken_bytes, memory_order_acquire);
}

double ring_fill(xs_ring *ring)
{
    double words = (double)used_words(ring) / WORDS, bytes = (double)used_bytes(ring) / BYTES;
    double fill = words > bytes ? words : bytes;
    return fill < 0 ? 0 : fill > 1 ? 1 : fill; /* the two ends are read one after the other */
}

static bool half_free(xs_ring *ring)
{
    return used_words(ring) <= WORDS / 2 && used_bytes(ring) <= BYTES / 2;
}

static int64_t tuple_bytes(const xs_slot *tuple, uint64_t segments)
{
    int64_t bytes = 0;
    for (; segments; segments &= segments - 1) bytes += seg_bytes(tuple[__builtin_ctzll(segments)].seg);
    return bytes;
}

static void count_bytes(_Atomic int64_t *total, int64_t bytes)
{
    int64_t before = atomic_load_explicit(total, memory_order_relaxed);
    if (bytes) atomic_store_explicit(total, before + bytes, memory_order_release);
}

static bool is_abandoned(xs_ring *ring)
{
    return atomic_load_explicit(&ring->abandoned, memory_order_acquire) != 0;
}

/* A thread that parks announces this before its last check, and a thread that changes the ring does
 * so before it checks for parked threads. Both use seq_cst for the last check, so no wake-up is lost. */
static void wake(xs_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

static void park(xs_ring *ring, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    pthread_cond_timedwait(&ring->changed, &ring->lock, &until);
}

void ring_wake(xs_ring *ring)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&ring->taker_parked, memory_order_relaxed)) wake(ring);
}

void ring_abandon(xs_ring *ring)
{
    atomic_store_explicit(&ring->abandoned, 1, memory_order_seq_cst);
    wake(ring);
}

/* -- giving -------------------------------------------------------------------------------- */

/* An upper bound of the words in the ring; `head` is read only if the bound is too high. */
static int64_t fill(xs_ring *ring, int64_t matters)
{
    int64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail - ring->known_head >= matters)
        ring->known_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    return tail - ring->known_head;
}

/* The same for the bytes of samples. */
static int64_t fill_bytes(xs_ring *ring, int64_t matters)
{
    int64_t given = atomic_load_explicit(&ring->given_bytes, memory_order_relaxed);
    if (given - ring->known_taken >= matters)
        ring->known_taken = atomic_load_explicit(&ring->taken_bytes, memory_order_acquire);
    return given - ring->known_taken;
}

/* Parks until half of the ring is free; no operator is charged for the time. False: abandoned. */
static bool wait_for_room(xs_ring *ring)
{
    for (int look = 0; look < LOOKS; look++) {
        if (half_free(ring)) return true;
        look_again();
    }
    int64_t begin = engine_now_ns();
    pthread_mutex_lock(&ring->lock);
    atomic_store_explicit(&ring->giver_parked, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&ring->taker_parked, memory_order_seq_cst))
        pthread_cond_broadcast(&ring->changed);
    while (!half_free(ring) && !is_abandoned(ring))
        park(ring, engine_now_ns() + PARK_MAX_NS);
    atomic_store_explicit(&ring->giver_parked, 0, memory_order_relaxed);
    pthread_mutex_unlock(&ring->lock);
    ring->giver->child_ns += engine_now_ns() - begin;
    return !is_abandoned(ring);
}

/* The producer's position, with room for the given number of words; -1: abandoned. */
static int64_t room_for(xs_ring *ring, int64_t words)
{
    if (unlikely(is_abandoned(ring))) return -1;
    if (unlikely(fill(ring, WORDS - words + 1) > WORDS - words ||
                 fill_bytes(ring, BYTES) > BYTES)) {
        if (!wait_for_room(ring)) return -1;
        ring->known_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    }
    return atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

static inline xs_slot *word_at(xs_ring *ring, int64_t position)
{
    return &ring->word[position & (WORDS - 1)];
}

static void publish(xs_ring *ring, int64_t tail)
{
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
    if (likely(!atomic_load_explicit(&ring->taker_parked, memory_order_relaxed))) return;
    /* If tuples have arrival times, the time until the next one is not known. */
    if (ring->giver->live || ring->giver->patient || fill(ring, 0) >= WAKE) wake(ring);
}

/* The producer changes sides rarely: neighbouring tuples often share a block of samples, and two threads
 * that use one block at a time wait for each other's counts on it. */
static bool stands_in(xs_ring *ring)
{
    if (ring->standing_in && ring->until_look-- > 0) return true; /* looking costs a cache miss */
    ring->until_look = LOOK_EVERY;
    int64_t bytes = fill_bytes(ring, MUCH_BYTES);
    int64_t enough = ring->standing_in || bytes >= MUCH_BYTES ? PLENTY : MUCH;
    return fill(ring, enough) >= enough || bytes >= BYTES / 2;
}

xs_op *ring_stand_in(const xs_edge *edge)
{
    xs_ring *ring = edge->ring;
    xs_op **clone = edge->to->clone;
    if (!clone) return NULL;
    ring->standing_in = stands_in(ring);
    if (!ring->standing_in) return NULL;
    if (atomic_load_explicit(&ring->taker_parked, memory_order_relaxed)) wake(ring);
    return clone[ring->giver->part];
}

/* The first word of an entry: a port, or a fan, whose address is marked by its lowest bit. */
enum { FAN_BIT = 1 };
static int64_t word_of(xs_queue *to) { return (int64_t)(intptr_t)to; }
static int64_t word_of_fan(xs_fan *fan) { return (int64_t)(intptr_t)fan | FAN_BIT; }

static void put(xs_ring *ring, int64_t tail, int64_t first, const xs_slot *tuple, const xs_shape *shape)
{
    word_at(ring, tail)->i = first;
    count_bytes(&ring->given_bytes, tuple_bytes(tuple, shape->segments));
    publish(ring, tail + 1 + shape->fields);
}

/* Gives counts on the tuple's segments to the ring; `to` is charged, and named if memory runs out. */
static int32_t pass_shared(xs_ring *ring, int64_t first, const xs_queue *to, const xs_slot *tuple,
                           const xs_shape *shape)
{
    int64_t tail = room_for(ring, 1 + shape->fields);
    if (tail < 0) return XS_OK;
    xs_cost_mark mark;
    bool profiled = unlikely(ring->giver->profiled), shared = true;
    if (profiled) cost_enter(ring->giver, &mark);
    for (int32_t i = 0; i < shape->fields; i++) *word_at(ring, tail + 1 + i) = tuple[i];
    for (uint64_t left = shape->segments; left && shared; left &= left - 1) {
        int field = __builtin_ctzll(left);
        xs_seg *seg = xs_seg_share(tuple[field].seg);
        word_at(ring, tail + 1 + field)->seg = seg;
        shared = seg != NULL;
        if (shared) continue;
        for (uint64_t done = shape->segments & ((1ull << field) - 1); done; done &= done - 1)
            xs_seg_drop(word_at(ring, tail + 1 + __builtin_ctzll(done))->seg);
    }
    if (profiled) cost_charge(ring->giver, to->op, &mark);
    if (!shared) {
        plan_out_of_memory(ring->giver);
        return plan_failed_at(ring->giver, to->op, to->port, tuple);
    }
    put(ring, tail, first, tuple, shape);
    return XS_OK;
}

static void pass_owned(xs_ring *ring, int64_t first, const xs_slot *tuple, const xs_shape *shape)
{
    int64_t tail = room_for(ring, 1 + shape->fields);
    if (tail < 0) {
        tuple_drop(tuple, shape->segments);
        return;
    }
    for (int32_t i = 0; i < shape->fields; i++) *word_at(ring, tail + 1 + i) = tuple[i];
    put(ring, tail, first, tuple, shape);
}

int32_t ring_pass(xs_ring *ring, xs_queue *to, const xs_slot *tuple, const xs_shape *shape)
{
    return pass_shared(ring, word_of(to), to, tuple, shape);
}

int32_t ring_pass_fan(xs_ring *ring, xs_fan *fan, const xs_slot *tuple)
{
    return pass_shared(ring, word_of_fan(fan), fan->edge->queue, tuple, &fan->shape);
}

void ring_pass_owned(xs_ring *ring, xs_queue *to, const xs_slot *tuple)
{
    pass_owned(ring, word_of(to), tuple, &to->op->in_shape[to->port]);
}

void ring_pass_fan_owned(xs_ring *ring, xs_fan *fan, const xs_slot *tuple)
{
    pass_owned(ring, word_of_fan(fan), tuple, &fan->shape);
}

void ring_mark(xs_ring *ring, xs_ring_kind kind)
{
    int64_t tail = room_for(ring, 1);
    if (tail < 0) return;
    word_at(ring, tail)->i = kind;
    publish(ring, tail + 1);
    ring_wake(ring);
}

/* False: abandoned. */
static bool mark_with(xs_ring *ring, xs_ring_kind kind, int64_t value)
{
    int64_t tail = room_for(ring, 2);
    if (tail < 0) return false;
    word_at(ring, tail)->i = kind;
    word_at(ring, tail + 1)->i = value;
    ring->marked = tail + 2;
    publish(ring, tail + 2);
    return true;
}

void ring_mark_burst(xs_ring *ring, xs_under_way *arrivals)
{
    int64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail == ring->marked && !arrivals) return;
    if (!mark_with(ring, RING_BURST, (int64_t)(intptr_t)arrivals)) free(arrivals);
}

void ring_mark_finish(xs_ring *ring, int32_t place) { mark_with(ring, RING_FINISH, place); }

/* -- taking -------------------------------------------------------------------------------- */

static bool something_came(xs_ring *ring, int64_t head)
{
    ring->known_tail = atomic_load_explicit(&ring->tail, memory_order_seq_cst);
    return ring->known_tail != head;
}

/* False: nothing arrived before the deadline. */
static bool wait_for_entry(xs_ring *ring, int64_t head, int64_t deadline_ns)
{
    for (int look = 0; look < LOOKS; look++) {
        if (something_came(ring, head)) return true;
        look_again();
    }
    pthread_mutex_lock(&ring->lock);
    while (!is_abandoned(ring)) {
        atomic_store_explicit(&ring->taker_parked, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&ring->giver_parked, memory_order_seq_cst))
            pthread_cond_broadcast(&ring->changed);
        int64_t now = engine_now_ns(), until = now + ring->park_ns;
        if (something_came(ring, head) || now >= deadline_ns) break;
        park(ring, until < deadline_ns ? until : deadline_ns);
        if (ring->park_ns < PARK_MAX_NS) ring->park_ns *= 2;
    }
    atomic_store_explicit(&ring->taker_parked, 0, memory_order_relaxed);
    pthread_mutex_unlock(&ring->lock);
    return something_came(ring, head);
}

static const xs_shape *taken_shape(xs_ring_kind kind, const xs_ring_to *to)
{
    return kind == RING_FAN ? &to->fan->shape : &to->queue->op->in_shape[to->queue->port];
}

xs_ring_kind ring_take(xs_ring *ring, xs_ring_to *to, xs_slot *tuple, int64_t deadline_ns)
{
    int64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (unlikely(is_abandoned(ring))) return RING_FAILED;
    if (head == ring->known_tail && !something_came(ring, head)) {
        if (!wait_for_entry(ring, head, deadline_ns))
            return is_abandoned(ring) ? RING_FAILED : RING_EMPTY;
        ring->park_ns = PARK_MIN_NS;
    }
    int64_t first = word_at(ring, head)->i, next = head + 1;
    xs_ring_kind kind;
    if (first < MARKS) {
        kind = (xs_ring_kind)first;
        if (kind == RING_BURST || kind == RING_FINISH) tuple[0] = *word_at(ring, next++);
    } else {
        kind = first & FAN_BIT ? RING_FAN : RING_TUPLE;
        if (kind == RING_FAN) to->fan = (xs_fan *)(intptr_t)(first & ~(int64_t)FAN_BIT);
        else to->queue = (xs_queue *)(intptr_t)first;
        const xs_shape *shape = taken_shape(kind, to);
        for (int32_t i = 0; i < shape->fields; i++) tuple[i] = *word_at(ring, next++);
        count_bytes(&ring->taken_bytes, tuple_bytes(tuple, shape->segments));
    }
    atomic_store_explicit(&ring->head, next, memory_order_release);
    if (unlikely(atomic_load_explicit(&ring->giver_parked, memory_order_relaxed)) &&
        half_free(ring))
        wake(ring);
    return kind;
}

void ring_free(xs_ring *ring)
{
    xs_slot tuple[MAX_FIELDS];
    xs_ring_to to;
    atomic_store_explicit(&ring->abandoned, 0, memory_order_relaxed);
    for (;;) {
        xs_ring_kind kind = ring_take(ring, &to, tuple, 0);
        if (kind == RING_EMPTY) break;
        if (kind == RING_BURST) free((void *)(intptr_t)tuple[0].i);
        if (kind == RING_TUPLE || kind == RING_FAN)
            tuple_drop(tuple, taken_shape(kind, &to)->segments);
    }
    pthread_cond_destroy(&ring->changed);
    pthread_mutex_destroy(&ring->lock);
    free(ring->word);
    free(ring);
}
