/* Five paths of the core with a fixed input, for callgrind, which counts the instructions of `measured`.
 *
 *     paths append|subseg|hops|queues|rewindow
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/engine.h"
#include "ops/operators.h"
#include "sched/run.h"

enum { WINDOW = 64, WINDOWS = 2000, CHAIN = 10, ROUNDS = 10 };

/* No plan here has operators in Python. */
int32_t xs_python_process(int64_t token) { return (int32_t)token; }
int32_t xs_python_produce(int64_t token) { return (int32_t)token; }
int32_t xs_python_finish(int64_t token) { return (int32_t)token; }

static xs_manager *manager;
static xs_seg *windows[WINDOWS];
static xs_seg *whole;
static xs_plan *plan;

static xs_op *added(xs_op *op, int32_t ins, int32_t outs)
{
    const xs_shape one[1] = {{1, 1}};
    xs_plan_shape_in(op, ins, one);
    xs_plan_shape_out(op, outs, one);
    return op;
}

static void joined(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        xs_seg *seg = xs_seg_ref(windows[0]);
        for (int i = 1; i < WINDOWS; i++) {
            xs_seg *longer = xs_seg_append(seg, windows[i]);
            xs_seg_drop(seg);
            seg = longer;
        }
        xs_seg_drop(seg);
    }
}

static void cut(void)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WINDOWS; i++) xs_seg_drop(xs_seg_subseg(whole, (int64_t)WINDOW * i + 7, 9));
}

/* The only function whose instructions are counted, with all that it calls. */
__attribute__((noinline, noclone)) void measured(int path)
{
    if (path == 0) joined();
    else if (path == 1) cut();
    else while (xs_plan_run(plan, INT64_MAX / 4) != XS_END);
}

/* source -> ten operators -> sink */
static void build(int path)
{
    plan = xs_plan_new(manager);
    xs_op *from = added(xs_op_array_source(plan, whole, WINDOW, ROUNDS, 1, 0), 0, 1);
    for (int i = 0; i < CHAIN; i++) {
        xs_op *next = added(path == 4 ? xs_op_rewindow(plan, WINDOW + 1 + i, 0, 1) : xs_op_pass(plan), 1, 1);
        xs_plan_connect(from, 0, next, 0);
        from = next;
    }
    xs_plan_connect(from, 0, added(xs_op_count(plan), 1, 0), 0);
    xs_plan_prepare(plan, path == 3 ? XS_FIFO : XS_DF, 64, 0);
}

int main(int argc, char **argv)
{
    const char *names[] = {"append", "subseg", "hops", "queues", "rewindow"};
    int path = 0;
    while (path < 5 && (argc < 2 || strcmp(names[path], argv[1]))) path++;
    if (path == 5) return fprintf(stderr, "usage: paths append|subseg|hops|queues|rewindow\n"), 2;
    manager = xs_manager_new(XS_REFCOUNT_LAZY, INT64_MAX);
    for (int i = 0; i < WINDOWS; i++) windows[i] = xs_seg_new(manager, (int64_t)WINDOW * i, WINDOW, 4);
    whole = xs_seg_new(manager, 0, (int64_t)WINDOW * WINDOWS, 4);
    if (path > 1) build(path);
    measured(path);
    return 0;
}
