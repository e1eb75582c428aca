/* EngineBench without Python: pass-through operators in a chain, windows through it. For perf and
 * valgrind, which would otherwise look at an interpreter that starts.
 *
 *     enginebench SCHEDULER OPERATORS WINDOWS     SCHEDULER as xs_scheduler_kind numbers them */
#include <stdio.h>

#include "../../../xstream/engine/engine.h"
#include "../../../xstream/ops/operators.h"
#include "../../../xstream/sched/run.h"

/* The core calls Python operators through these; there are none here. */
int32_t xs_python_process(int64_t token) { return (int32_t)token * 0 + XS_FAILED; }
int32_t xs_python_produce(int64_t token) { return (int32_t)token * 0 + XS_FAILED; }
int32_t xs_python_finish(int64_t token) { return (int32_t)token * 0 + XS_FAILED; }

enum { WINDOW = 64, RECORDING = 64 * WINDOW, BURST = 64 };

/* The only function that is counted. */
__attribute__((noinline)) int32_t measured(xs_plan *plan)
{
    int32_t status;
    do status = xs_plan_run(plan, 1000000000);
    while (status == XS_OK || status == XS_WAIT);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    int scheduler = atoi(argv[1]), operators = atoi(argv[2]);
    int64_t windows = atoll(argv[3]);
    const xs_shape shape = {.fields = 1, .segments = 1};
    xs_manager *manager = xs_manager_new(XS_REFCOUNT_LAZY, INT64_MAX);
    xs_seg *recording = xs_seg_new(manager, 0, RECORDING, 4);
    memset(xs_seg_own_data(recording), 0, RECORDING * 4);
    xs_plan *plan = xs_plan_new(manager);
    xs_op *last = xs_op_array_source(plan, recording, WINDOW, windows * WINDOW / RECORDING, 0, 0.0);
    xs_plan_shape_in(last, 0, &shape);
    xs_plan_shape_out(last, 1, &shape);
    for (int i = 0; i <= operators; i++) {
        xs_op *op = i < operators ? xs_op_pass(plan) : xs_op_count(plan);
        xs_plan_shape_in(op, 1, &shape);
        xs_plan_shape_out(op, i < operators, &shape);
        xs_plan_connect(last, 0, op, 0);
        last = op;
    }
    if (xs_plan_prepare(plan, scheduler, BURST, 28000)) return 1;
    int32_t status = measured(plan);
    xs_op_stats stats;
    xs_op_stats_read(last, &stats);
    printf("%lld\n", (long long)stats.tuples);
    xs_plan_free(plan);
    xs_seg_drop(recording);
    xs_manager_drop(manager);
    return status == XS_END ? 0 : 1;
}
