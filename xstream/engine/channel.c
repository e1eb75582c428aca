/* Channels: tuples from an operator of one plan to a source of another, which another thread runs.
 *
 * A bounded ring of tuples, each with counts of its own on its segments. Whoever gives waits while
 * it is full, whoever takes while it is empty; neither spins.
 */
#include <pthread.h>
#include <time.h>

#include "engine.h"

struct xs_channel {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    xs_shape shape;
    xs_slot *ring;
    int64_t capacity, head, length;
    bool closed;    /* nothing more will come */
    bool abandoned; /* nobody takes any more: what comes is dropped */
    _Atomic int64_t refs;
};

enum { PATIENCE_NS = 5000000 }; /* between two looks at whether a plan was stopped */

static void wait_for_change(xs_channel *channel, int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&channel->changed, &channel->lock, &until);
}

xs_channel *xs_channel_new(int64_t capacity, int32_t fields, uint64_t segments)
{
    xs_channel *channel = calloc(1, sizeof *channel);
    if (!channel) return NULL;
    channel->ring = malloc((size_t)capacity * (size_t)fields * sizeof *channel->ring);
    if (!channel->ring) {
        free(channel);
        return NULL;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&channel->lock, NULL);
    pthread_cond_init(&channel->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    channel->shape = (xs_shape){fields, segments};
    channel->capacity = capacity;
    atomic_init(&channel->refs, 1);
    return channel;
}

static void drop_all(xs_channel *channel)
{
    for (; channel->length; channel->length--) {
        tuple_drop(channel->ring + channel->head * channel->shape.fields, channel->shape.segments);
        channel->head = (channel->head + 1) % channel->capacity;
    }
}

void xs_channel_drop(xs_channel *channel)
{
    if (atomic_fetch_sub_explicit(&channel->refs, 1, memory_order_acq_rel) != 1) return;
    drop_all(channel);
    pthread_cond_destroy(&channel->changed);
    pthread_mutex_destroy(&channel->lock);
    free(channel->ring);
    free(channel);
}

static void end(xs_channel *channel, bool abandon)
{
    pthread_mutex_lock(&channel->lock);
    channel->closed = true;
    if (abandon) {
        channel->abandoned = true;
        drop_all(channel);
    }
    pthread_cond_broadcast(&channel->changed);
    pthread_mutex_unlock(&channel->lock);
}

void xs_channel_close(xs_channel *channel) { end(channel, false); }
void xs_channel_abandon(xs_channel *channel) { end(channel, true); }

int64_t xs_channel_length(xs_channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    int64_t length = channel->length;
    pthread_mutex_unlock(&channel->lock);
    return length;
}

typedef struct {
    xs_op op;
    xs_channel *channel;
} xs_channel_end;

static int32_t give(xs_op *op, int32_t port, const xs_slot *tuple)
{
    (void)port;
    xs_channel *channel = ((xs_channel_end *)op)->channel;
    const xs_shape *shape = &channel->shape;
    pthread_mutex_lock(&channel->lock);
    while (channel->length == channel->capacity && !channel->abandoned)
        wait_for_change(channel, PATIENCE_NS);
    if (!channel->abandoned) {
        int64_t at = (channel->head + channel->length) % channel->capacity;
        memcpy(channel->ring + at * shape->fields, tuple, (size_t)shape->fields * sizeof *tuple);
        for (uint64_t left = shape->segments; left; left &= left - 1)
            xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
        if (!channel->length++) pthread_cond_broadcast(&channel->changed);
    }
    pthread_mutex_unlock(&channel->lock);
    return XS_OK;
}

static int32_t give_finish(xs_op *op)
{
    xs_channel_close(((xs_channel_end *)op)->channel);
    return XS_OK;
}

static int32_t take(xs_op *op)
{
    xs_channel *channel = ((xs_channel_end *)op)->channel;
    const xs_shape *shape = &channel->shape;
    xs_slot tuple[MAX_FIELDS];
    pthread_mutex_lock(&channel->lock);
    /* A plan with one source can wait here; one with several looks at the others meanwhile. */
    if (!channel->length && !channel->closed && op->plan->sources == 1)
        wait_for_change(channel, PATIENCE_NS);
    if (!channel->length) {
        bool closed = channel->closed;
        pthread_mutex_unlock(&channel->lock);
        return closed ? XS_END : XS_WAIT;
    }
    memcpy(tuple, channel->ring + channel->head * shape->fields,
           (size_t)shape->fields * sizeof *tuple);
    channel->head = (channel->head + 1) % channel->capacity;
    if (channel->length-- == channel->capacity) pthread_cond_broadcast(&channel->changed);
    pthread_mutex_unlock(&channel->lock);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        if (tuple[__builtin_ctzll(left)].seg->manager != op->plan->manager) {
            tuple_drop(tuple, shape->segments);
            return op_fail(op, "the segments in the channel have another memory manager: run both "
                           "queries with one");
        }
    op->samples += shape->segments ? tuple[__builtin_ctzll(shape->segments)].seg->width : 1;
    int32_t status = emit_giving(op, 0, tuple, tuple);
    tuple_drop(tuple, shape->segments);
    return status;
}

static void end_destroy(xs_op *op) { xs_channel_drop(((xs_channel_end *)op)->channel); }

static const xs_op_table give_table = {
    .process = give, .finish = give_finish, .destroy = end_destroy};
static const xs_op_table take_table = {.produce = take, .destroy = end_destroy};

static xs_op *channel_end(xs_plan *plan, xs_channel *channel, const xs_op_table *table)
{
    xs_channel_end *one = op_new(plan, sizeof *one, table);
    if (!one) return NULL;
    atomic_fetch_add_explicit(&channel->refs, 1, memory_order_relaxed);
    one->channel = channel;
    return &one->op;
}

xs_op *xs_op_channel_sink(xs_plan *plan, xs_channel *channel)
{
    return channel_end(plan, channel, &give_table);
}

xs_op *xs_op_channel_source(xs_plan *plan, xs_channel *channel)
{
    plan->patient = true;
    return channel_end(plan, channel, &take_table);
}
