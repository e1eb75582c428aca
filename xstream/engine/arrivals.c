/* Tuples with arrival times: how late they are admitted, and how long their results take. */
#include "engine.h"

static int32_t bucket_of(int64_t ns)
{
    if (ns < 32) return (int32_t)ns;
    int32_t power = 63 - __builtin_clzll((uint64_t)ns);
    return (power - 4) * 32 + (int32_t)(ns >> (power - 5) & 31);
}

/* The largest delay of a bucket. */
static int64_t bucket_end(int32_t bucket)
{
    if (bucket < 32) return bucket;
    int32_t power = bucket / 32 + 4;
    return ((int64_t)(32 + bucket % 32 + 1) << (power - 5)) - 1;
}

static void delays_add(xs_delays *delays, int64_t ns)
{
    if (ns < 0) ns = 0;
    counter_add(&delays->bucket[bucket_of(ns)], 1);
    if (ns > delays->worst_ns) counter_set(&delays->worst_ns, ns);
    counter_add(&delays->count, 1);
}

static int64_t quantile(const xs_delays *delays, double share)
{
    int64_t left = (int64_t)(share * (double)counter_get(&delays->count));
    int64_t worst_ns = counter_get(&delays->worst_ns);
    for (int32_t i = 0; i < DELAY_BUCKETS; i++) {
        left -= counter_get(&delays->bucket[i]);
        if (left < 0) return bucket_end(i) < worst_ns ? bucket_end(i) : worst_ns;
    }
    return worst_ns;
}

bool arrivals_measure(xs_op *op)
{
    if (!op->arrivals) op->arrivals = calloc(1, sizeof *op->arrivals);
    if (op->arrivals) op->plan->live = true;
    return op->arrivals != NULL;
}

void arrivals_note(xs_op *op, int64_t late_ns)
{
    xs_arrivals *arrivals = op->arrivals;
    delays_add(&arrivals->lateness, late_ns);
    if (arrivals->length == arrivals->capacity) {
        int64_t capacity = arrivals->capacity ? 2 * arrivals->capacity : 64;
        int64_t *under_way = realloc(arrivals->under_way, (size_t)capacity * sizeof *under_way);
        if (!under_way) return; /* one latency is not measured */
        arrivals->under_way = under_way;
        arrivals->capacity = capacity;
    }
    arrivals->under_way[arrivals->length++] = engine_now_ns() - late_ns;
}

void arrivals_settle(xs_plan *plan)
{
    int64_t now = 0;
    for (int32_t i = 0; i < plan->sources; i++) {
        xs_arrivals *arrivals = plan->source[i]->arrivals;
        if (!arrivals || !arrivals->length) continue;
        if (!now) now = engine_now_ns();
        for (int64_t j = 0; j < arrivals->length; j++)
            delays_add(&arrivals->latency, now - arrivals->under_way[j]);
        arrivals->length = 0;
    }
}

/* Tuples that are in flight between the parts of a plan. */
struct xs_under_way {
    int64_t length;
    struct {
        xs_arrivals *arrivals;
        int64_t arrived_ns;
    } tuple[];
};

xs_under_way *arrivals_take(xs_plan *plan)
{
    int64_t length = 0;
    for (int32_t i = 0; i < plan->sources; i++)
        if (plan->source[i]->arrivals) length += plan->source[i]->arrivals->length;
    xs_under_way *taken = NULL;
    if (length) taken = malloc(sizeof *taken + (size_t)length * sizeof taken->tuple[0]);
    if (taken) taken->length = 0;
    for (int32_t i = 0; i < plan->sources; i++) {
        xs_arrivals *arrivals = plan->source[i]->arrivals;
        for (int64_t j = 0; arrivals && taken && j < arrivals->length; j++) {
            taken->tuple[taken->length].arrivals = arrivals;
            taken->tuple[taken->length++].arrived_ns = arrivals->under_way[j];
        }
        if (arrivals) arrivals->length = 0; /* out of memory: some latencies are not measured */
    }
    return taken;
}

void arrivals_settle_taken(xs_under_way *taken)
{
    int64_t now = taken ? engine_now_ns() : 0;
    for (int64_t i = 0; taken && i < taken->length; i++)
        delays_add(&taken->tuple[i].arrivals->latency, now - taken->tuple[i].arrived_ns);
    free(taken);
}

static void delays_read(const xs_delays *delays, xs_delay_stats *out)
{
    *out = (xs_delay_stats){counter_get(&delays->count), quantile(delays, 0.5),
                            quantile(delays, 0.99), counter_get(&delays->worst_ns)};
}

void xs_op_delays_read(xs_op *op, xs_delay_stats *lateness, xs_delay_stats *latency)
{
    *lateness = *latency = (xs_delay_stats){0};
    if (!op->arrivals) return;
    delays_read(&op->arrivals->lateness, lateness);
    delays_read(&op->arrivals->latency, latency);
}
