/* What a run has counted so far. Any thread may read it while others run the plan: each counter is read
 * atomically, so that no value is torn; neighbouring ones may differ by the tuples of some nanoseconds.
 * Only cutting the plan must not happen meanwhile (`Run.snapshot` has a lock for it). */
#include "engine.h"

static void add_results(const xs_op *op, xs_op_stats *out)
{
    out->emitted += counter_get(&op->emitted);
    out->dropped += counter_get(&op->dropped);
    out->busy_ns += op_busy_ns(op);
}

static void add_stats(const xs_op *op, xs_op_stats *out)
{
    out->tuples += counter_get(&op->tuples);
    out->samples += counter_get(&op->samples);
    add_results(op, out);
}

void xs_op_stats_read(xs_op *op, xs_op_stats *out)
{
    *out = (xs_op_stats){0};
    add_stats(op, out);
    for (int32_t part = 0; op->clone && part < op->clones; part++)
        if (op->clone[part]) add_stats(op->clone[part], out);
    if (op->half) add_results(op->half, out); /* its tuples are orders */
    for (int32_t part = 0; op->half && op->half->clone && part < op->half->clones; part++)
        if (op->half->clone[part]) add_results(op->half->clone[part], out);
    for (int32_t i = 0; i < op->ins; i++) {
        int64_t peak = counter_get(&op->in[i].peak);
        if (peak > out->queue_peak) {
            out->queue_peak = peak;
            out->queue_peak_bytes = peak * op->in_shape[i].fields * (int64_t)sizeof(xs_slot);
        }
    }
}

void xs_ops_snapshot(xs_op **ops, int32_t count, int64_t *out)
{
    for (int32_t i = 0; i < count; i++, out += XS_SNAPSHOT_COLUMNS) {
        xs_op_stats stats;
        xs_op_stats_read(ops[i], &stats);
        out[0] = stats.tuples;
        out[1] = stats.samples;
        out[2] = stats.emitted;
        out[3] = stats.busy_ns;
        out[4] = stats.dropped;
        out[5] = stats.queue_peak;
    }
}

void xs_ports_waiting(xs_op **ops, const int32_t *ports, int32_t count, int64_t *out)
{
    for (int32_t i = 0; i < count; i++) out[i] = counter_get(&ops[i]->in[ports[i]].length);
}

int64_t xs_plan_queue_bytes(xs_plan *plan)
{
    int64_t bytes = counter_get(&plan->queue_bytes);
    for (int32_t i = 0; i < plan->parts - 1; i++) bytes += counter_get(&plan->later[i]->queue_bytes);
    return bytes;
}

void xs_plan_rings(xs_plan *plan, double *fill)
{
    for (int32_t part = 0; part < plan->parts - 1; part++)
        fill[part] = ring_fill((part ? plan->later[part - 1] : plan)->ring_out);
}
