/* The order of datagrams: early ones wait, duplicates and late ones are left out, the missing are counted. */
#include "datagrams.h"

enum {
    SEEN = 64 * 64,
    FORWARD_MOST = 1 << 20, /* a larger step is a stray, or a new beginning */
    BACKWARD_MOST = 1 << 16,
};

bool order_init(xs_order *order, xs_intake *in, const xs_datagram_options *options)
{
    *order = (xs_order){.in = in, .sequence_bytes = options->sequence_bytes, .most = options->reorder,
                        .patience_ns = options->reorder_ns};
    order->held = calloc((size_t)options->reorder + 1, sizeof *order->held);
    return order->held != NULL;
}

void order_free(xs_order *order)
{
    for (int32_t i = 0; i < order->length; i++) free(order->held[i].data);
    free(order->held);
}

/* How far a number is ahead of another one, where numbers begin anew after the largest. */
static int64_t ahead(const xs_order *order, uint64_t number, uint64_t of)
{
    int32_t unused = 64 - 8 * order->sequence_bytes;
    return (int64_t)((number - of) << unused) >> unused;
}

static uint64_t after(const xs_order *order, uint64_t number)
{
    return (number + 1) & UINT64_MAX >> (64 - 8 * order->sequence_bytes);
}

static uint64_t *seen_word(xs_order *order, uint64_t number) { return &order->seen[number / 64 % 64]; }

static bool was_seen(xs_order *order, uint64_t number)
{
    return *seen_word(order, number) >> number % 64 & 1;
}

/* Everything before `number` counts as delivered or given up. */
static void expect(xs_order *order, uint64_t number)
{
    int64_t steps = ahead(order, number, order->expected);
    order->passed += steps;
    if (steps >= SEEN || steps < 0) memset(order->seen, 0, sizeof order->seen), steps = 0;
    for (uint64_t at = order->expected; steps--; at = after(order, at))
        *seen_word(order, at) &= ~((uint64_t)1 << at % 64);
    order->expected = number;
}

/* A datagram is delivered: those between the expected one and it are lost. */
static void deliver(xs_order *order, xs_datagram *datagram)
{
    datagram->lost = ahead(order, datagram->sequence, order->expected);
    intake_count(order->in, XS_NET_LOST, datagram->lost);
    expect(order, datagram->sequence);
    expect(order, after(order, datagram->sequence));
    *seen_word(order, datagram->sequence) |= (uint64_t)1 << datagram->sequence % 64;
}

static xs_order_outcome put_late(xs_order *order, uint64_t number, int64_t behind)
{
    bool known = behind <= SEEN && was_seen(order, number);
    intake_count(order->in, known ? XS_NET_DUPLICATES : XS_NET_LATE, 1);
    if (known || behind > SEEN || behind > order->passed) return ORDER_LATER;
    intake_count(order->in, XS_NET_LOST, -1); /* it is late, not lost */
    *seen_word(order, number) |= (uint64_t)1 << number % 64;
    return ORDER_LATER;
}

/* A number far from all others. One that follows it as well is a sender that has begun anew. */
static xs_order_outcome put_stray(xs_order *order, xs_datagram *datagram)
{
    bool again = order->has_stray && ahead(order, datagram->sequence, order->stray_next) == 0;
    intake_count(order->in, again ? XS_NET_RESTARTS : XS_NET_STRAYS, 1);
    order->has_stray = !again;
    order->stray_next = after(order, datagram->sequence);
    if (!again) return ORDER_LATER;
    memset(order->seen, 0, sizeof order->seen);
    order->expected = datagram->sequence;
    order->passed = 0;
    datagram->restarts = true;
    deliver(order, datagram);
    return ORDER_NEXT;
}

static xs_order_outcome put_early(xs_order *order, const xs_datagram *datagram)
{
    int32_t at = order->length;
    for (; at > 0; at--) {
        int64_t steps = ahead(order, datagram->sequence, order->held[at - 1].sequence);
        if (steps > 0) break;
        if (steps == 0) { /* the end, told again: what is missing until there is given up */
            if (!datagram->bytes) order->final = true;
            else intake_count(order->in, XS_NET_DUPLICATES, 1);
            return ORDER_LATER;
        }
    }
    char *data = malloc((size_t)datagram->bytes + 1);
    if (!data) return ORDER_NO_MEMORY;
    memcpy(data, datagram->data, (size_t)datagram->bytes);
    memmove(order->held + at + 1, order->held + at, (size_t)(order->length - at) * sizeof *order->held);
    order->held[at] = *datagram;
    order->held[at].data = data;
    if (!order->length++) order->held_since_ns = engine_now_ns();
    intake_count(order->in, XS_NET_REORDERED, 1);
    return ORDER_LATER;
}

xs_order_outcome order_put(xs_order *order, xs_datagram *datagram)
{
    if (!order->begun) {
        order->begun = true;
        order->expected = datagram->sequence;
    }
    int64_t steps = ahead(order, datagram->sequence, order->expected);
    if (steps > FORWARD_MOST || steps < -BACKWARD_MOST) return put_stray(order, datagram);
    order->has_stray = false;
    if (steps < 0) return datagram->bytes ? put_late(order, datagram->sequence, -steps) : ORDER_LATER;
    if (steps > 0 && order->most) return put_early(order, datagram);
    deliver(order, datagram);
    return ORDER_NEXT;
}

bool order_take(xs_order *order, bool final, xs_datagram *datagram)
{
    if (!order->length) return false;
    bool next = ahead(order, order->held[0].sequence, order->expected) == 0;
    bool waited = order->length >= order->most ||
                  engine_now_ns() - order->held_since_ns > order->patience_ns;
    if (!next && !final && !order->final && !waited) return false;
    *datagram = order->held[0];
    memmove(order->held, order->held + 1, (size_t)--order->length * sizeof *order->held);
    if (!next) order->held_since_ns = engine_now_ns();
    deliver(order, datagram);
    return true;
}
