/* Rings: pass tuples from a part of a plan to the next, which another thread runs.
 *
 * An entry is the input port, or the fan of several ports, that a tuple is for and the tuple's slots,
 * with counts on its segments; or a mark. Only the producer writes `tail`, and only the consumer writes
 * `head`, so passing a tuple takes no lock. The samples of a small segment are copied, and the consumer
 * makes a segment of its own from them (ring.h): that costs less than the cache lines that two threads
 * would take from each other, those of counts and of memory to be reused. A thread that finds the ring
 * full or empty polls for a moment and then parks.
 *
 * A parked consumer is not woken by every tuple, because a system call costs more than many small
 * operators. It is woken when the ring holds many tuples or the producer is about to pause, and it
 * also wakes up by itself, after intervals that grow.
 */
#include <pthread.h>
#include <time.h>

#include "ring.h"

enum {
    MANY_WORDS = WORDS / 4,
    /* Of work that is ahead of the consumer: */
    WAKE_NS = 100000,   /* it is woken, as it is by many words; */
    MUCH_NS = 400000,   /* the producer begins to do some of it; */
    LITTLE_NS = 100000, /* and ends, so that the consumer does not run out of work */
    LOOK_NS = 2000,     /* the producer looks again after so much: that costs a cache miss */
    BYTES = 32 << 20, /* of samples in a ring; one entry may have more */
    MARKS = 8,     /* a first word below this is a mark */
    LOOKS = 64,    /* at an empty or full ring before parking: some microseconds */
    PARK_MIN_NS = 100000,
    PARK_MAX_NS = 10000000,
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
    ring->by_value = passes_by_value(giver);
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

static void count_more(_Atomic int64_t *total, int64_t more)
{
    int64_t before = atomic_load_explicit(total, memory_order_relaxed);
    if (more) atomic_store_explicit(total, before + more, memory_order_release);
}

/* What stand-ins of an operator would need for a tuple. */
static int64_t work_of(const xs_op *op, const xs_slot *tuple)
{
    if (!op->clone_ns || !op->table->order_size) return op->clone_ns;
    return op->clone_ns * op->table->order_size(tuple);
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

/* The same for the work that stand-ins could have done. */
static int64_t work_ahead(xs_ring *ring, int64_t matters)
{
    if (ring->given_ns - ring->known_taken_ns >= matters)
        ring->known_taken_ns = atomic_load_explicit(&ring->taken_ns, memory_order_relaxed);
    return ring->given_ns - ring->known_taken_ns;
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

static void publish(xs_ring *ring, int64_t tail)
{
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
    if (likely(!atomic_load_explicit(&ring->taker_parked, memory_order_relaxed))) return;
    /* If tuples have arrival times, the time until the next one is not known. */
    if (ring->giver->live || ring->giver->patient || fill(ring, 0) >= MANY_WORDS ||
        work_ahead(ring, WAKE_NS) >= WAKE_NS)
        wake(ring);
}

/* The producer changes sides rarely: neighbouring tuples often share a block of samples, and two threads
 * that use one block at a time wait for each other's counts on it. */
static bool stands_in(xs_ring *ring, int64_t work_ns)
{
    if (ring->standing_in && (ring->until_look_ns -= work_ns) > 0) return true;
    ring->until_look_ns = LOOK_NS;
    int64_t enough = ring->standing_in ? LITTLE_NS : MUCH_NS;
    int64_t words = ring->standing_in ? MANY_WORDS : WORDS / 2;
    return work_ahead(ring, enough) >= enough || fill(ring, words) >= words ||
           fill_bytes(ring, BYTES / 2) >= BYTES / 2;
}

xs_op *ring_stand_in(const xs_edge *edge, const xs_slot *tuple)
{
    xs_ring *ring = edge->ring;
    xs_op **clone = edge->to->clone;
    if (!clone) return NULL;
    ring->standing_in = stands_in(ring, work_of(edge->to, tuple));
    if (!ring->standing_in) return NULL;
    if (atomic_load_explicit(&ring->taker_parked, memory_order_relaxed)) wake(ring);
    return clone[ring->giver->part];
}

/* The first word of an entry: a port, or a fan, whose address is marked by its lowest bit. */
enum { FAN_BIT = 1 };
static int64_t word_of(xs_queue *to) { return (int64_t)(intptr_t)to; }
static int64_t word_of_fan(xs_fan *fan) { return (int64_t)(intptr_t)fan | FAN_BIT; }

/* Writes a tuple: `small` segments by value, and references to the others, with the counts on them. */
static void put(xs_ring *ring, int64_t tail, int64_t first, const xs_slot *tuple, const xs_shape *shape,
                uint64_t small)
{
    int64_t next = tail + 1 + shape->fields;
    word_at(ring, tail)->i = first;
    for (int32_t i = 0; i < shape->fields; i++) {
        xs_slot *word = word_at(ring, tail + 1 + i);
        if (small >> i & 1) next = put_value(ring, next, word, tuple[i].seg);
        else *word = tuple[i];
    }
    count_more(&ring->given_bytes, tuple_bytes(tuple, shape->segments & ~small));
    if (!(first & FAN_BIT)) ring->given_ns += work_of(((xs_queue *)(intptr_t)first)->op, tuple);
    publish(ring, next);
}

/* Counts on all `segments` of a tuple, in `shared`; false without memory, and then there are none. */
static bool share_all(const xs_slot *tuple, uint64_t segments, xs_slot *shared)
{
    for (uint64_t left = segments; left; left &= left - 1) {
        int field = __builtin_ctzll(left);
        shared[field].seg = xs_seg_share(tuple[field].seg);
        if (likely(shared[field].seg)) continue;
        tuple_drop(shared, segments & (((uint64_t)1 << field) - 1));
        return false;
    }
    return true;
}

/* Passes a tuple that the caller keeps; `to` is charged, and named if memory runs out. */
static int32_t pass_shared(xs_ring *ring, int64_t first, const xs_queue *to, const xs_slot *tuple,
                           const xs_shape *shape)
{
    int64_t words = 1 + shape->fields;
    uint64_t small = small_segments(ring, tuple, shape->segments, &words);
    int64_t tail = room_for(ring, words);
    if (tail < 0) return XS_OK;
    if (small == shape->segments) {
        put(ring, tail, first, tuple, shape, small);
        return XS_OK;
    }
    xs_slot shared[MAX_FIELDS];
    xs_cost_mark mark;
    bool profiled = unlikely(ring->giver->profiled);
    if (profiled) cost_enter(ring->giver, &mark);
    for (int32_t i = 0; i < shape->fields; i++) shared[i] = tuple[i];
    bool passed = share_all(tuple, shape->segments & ~small, shared);
    if (profiled) cost_charge(ring->giver, to->op, &mark);
    if (!passed) {
        plan_out_of_memory(ring->giver);
        return plan_failed_at(ring->giver, to->op, to->port, tuple);
    }
    put(ring, tail, first, shared, shape, small);
    return XS_OK;
}

static void pass_owned(xs_ring *ring, int64_t first, const xs_slot *tuple, const xs_shape *shape)
{
    int64_t words = 1 + shape->fields;
    uint64_t small = small_segments(ring, tuple, shape->segments, &words);
    int64_t tail = room_for(ring, words);
    if (tail >= 0) put(ring, tail, first, tuple, shape, small);
    tuple_drop(tuple, tail < 0 ? shape->segments : small);
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

/* Reads a tuple's slots; returns the position behind them. Without memory for a segment the tuple's
 * segments are dropped and `*complete` is false. */
static int64_t take_slots(xs_ring *ring, int64_t next, const xs_shape *shape, xs_slot *tuple,
                          bool *complete)
{
    int64_t values = next + shape->fields, bytes = 0;
    uint64_t taken = 0;
    for (int32_t i = 0; i < shape->fields; i++) {
        tuple[i] = *word_at(ring, next + i);
        if (!(shape->segments >> i & 1)) continue;
        if (is_value(tuple[i])) values = take_value(ring, values, tuple[i], &tuple[i].seg);
        else bytes += seg_bytes(tuple[i].seg);
        if (likely(tuple[i].seg)) taken |= (uint64_t)1 << i;
    }
    count_more(&ring->taken_bytes, bytes);
    *complete = likely(taken == shape->segments);
    if (!*complete) tuple_drop(tuple, taken);
    return values;
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
        bool complete;
        next = take_slots(ring, next, shape, tuple, &complete);
        if (kind == RING_TUPLE) count_more(&ring->taken_ns, work_of(to->queue->op, tuple));
        if (unlikely(!complete)) {
            if (kind == RING_FAN) to->queue = to->fan->edge->queue;
            kind = RING_NO_MEMORY;
        }
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
