/* A plan that is cut into parts, each run by a thread: a recording in windows, through operators with and
 * without state, relays and merges, to sinks. Exits with 1 if the sinks do not have the tuples, and the
 * order, of one thread, or if something is still alive at the end.
 *
 *     parts [windows]
 */
#include <pthread.h>
#include <stdio.h>

#include "engine/engine.h"
#include "ops/operators.h"
#include "sched/run.h"

enum { WINDOW = 8, CHAIN = 9, BRANCHES = 16, MOST_PARTS = 4 };

/* No plan here has operators in Python. */
int32_t xs_python_process(int64_t token) { return (int32_t)token; }
int32_t xs_python_produce(int64_t token) { return (int32_t)token; }
int32_t xs_python_finish(int64_t token) { return (int32_t)token; }

static void *run_part(void *part)
{
    xs_plan *plan = part;
    while (xs_plan_run(plan, 1000000) != XS_END)
        ;
    return NULL;
}

static xs_op *added(xs_op *op, const xs_shape *ins, int32_t count, const xs_shape *outs)
{
    xs_plan_shape_in(op, count, ins);
    xs_plan_shape_out(op, outs ? 1 : 0, outs);
    return op;
}

/* source -> pass ... with a branch over rewindow, both merged, a branch over all parts, and a fan of
 * branches to each part. */
static xs_op *build(xs_plan *plan, xs_seg *recording)
{
    const xs_shape one[2] = {{1, 1}, {1, 1}};
    xs_op *from = added(xs_op_array_source(plan, recording, WINDOW, 1, 1, 0), one, 0, one);
    xs_op *merge = added(xs_op_pass(plan), one, 2, one);
    xs_op *first = from;
    for (int i = 0; i < CHAIN; i++) {
        xs_op *next = added(i % 3 ? xs_op_pass(plan) : xs_op_rewindow(plan, WINDOW, 0, 1), one, 1, one);
        xs_plan_connect(from, 0, next, 0);
        from = next;
    }
    xs_plan_connect(from, 0, merge, 0);
    xs_plan_connect(first, 0, merge, 1);
    for (int i = 0; i < BRANCHES; i++) {
        int64_t width = i % 2 ? WINDOW : 3, gap = i % 3 ? 0 : -1;
        xs_op *branch = added(xs_op_rewindow(plan, width, gap, i % 4 > 1), one, 1, one);
        xs_plan_connect(first, 0, branch, 0);
        xs_plan_connect(branch, 0, merge, 1);
    }
    xs_op *sink = added(xs_op_collect(plan), one, 1, NULL);
    xs_plan_connect(merge, 0, sink, 0);
    return sink;
}

static int64_t *starts(xs_manager *manager, xs_seg *recording, int32_t parts, int64_t *count)
{
    xs_plan *plan = xs_plan_new(manager);
    xs_op *sink = build(plan, recording);
    xs_plan_prepare(plan, XS_DF, 64, 0);
    int32_t found = xs_plan_cut(plan, parts);
    pthread_t thread[MOST_PARTS];
    for (int32_t p = 0; p < found; p++)
        pthread_create(&thread[p], NULL, run_part, xs_plan_part(plan, p));
    for (int32_t p = 0; p < found; p++) pthread_join(thread[p], NULL);
    *count = found == parts ? xs_collected(sink) : -1;
    int64_t *start = malloc((size_t)(*count + 1) * sizeof *start);
    for (int64_t i = 0; i < *count; i++) start[i] = xs_seg_start(xs_collected_tuple(sink, i)->seg);
    xs_plan_free(plan);
    return start;
}

/* The branches of the first part, of a source that took long for one of its first tuples. */
static int branches_beside(xs_manager *manager, xs_seg *recording)
{
    const xs_shape one[1] = {{1, 1}};
    xs_plan *plan = xs_plan_new(manager);
    xs_op *source = added(xs_op_array_source(plan, recording, WINDOW, 1, 1, 0), one, 0, one);
    xs_op *branch[BRANCHES];
    for (int i = 0; i < BRANCHES; i++) {
        branch[i] = added(xs_op_rewindow(plan, WINDOW, 0, 1), one, 1, one);
        xs_op *sink = added(xs_op_collect(plan), one, 1, NULL);
        xs_plan_connect(source, 0, branch[i], 0);
        xs_plan_connect(branch[i], 0, sink, 0);
        branch[i]->busy_ns = branch[i]->first_ns = 1000;
        branch[i]->tuples = branch[i]->timed_tuples = 1;
    }
    source->busy_ns = 1000000;
    source->least_ns = 100;
    source->tuples = source->timed_tuples = 2;
    xs_plan_prepare(plan, XS_DF, 64, 0);
    xs_plan_cut(plan, 2);
    int beside = 0;
    for (int i = 0; i < BRANCHES; i++) beside += xs_op_part(branch[i]) == 0;
    xs_plan_free(plan);
    return beside;
}

int main(int argc, char **argv)
{
    int64_t windows = argc > 1 ? atol(argv[1]) : 20000;
    for (int kind = XS_COPY_ALWAYS; kind <= XS_REFCOUNT_LAZY; kind++) {
        xs_manager *manager = xs_manager_new((xs_kind)kind, INT64_MAX);
        xs_seg *recording = xs_seg_new(manager, 0, windows * WINDOW, 4);
        memset(xs_seg_own_data(recording), 0, (size_t)(windows * WINDOW * 4));
        int64_t count, found;
        int64_t *alone = starts(manager, recording, 1, &count);
        for (int32_t parts = 2; parts <= MOST_PARTS; parts++) {
            int64_t *start = starts(manager, recording, parts, &found);
            if (found != count || memcmp(start, alone, (size_t)count * sizeof *start)) {
                fprintf(stderr, "wrong: %d parts, %lld tuples of %lld\n", parts, (long long)found,
                        (long long)count);
                return 1;
            }
            free(start);
        }
        int beside = branches_beside(manager, recording);
        if (beside < BRANCHES / 2 - 1 || beside > BRANCHES / 2 + 1) {
            fprintf(stderr, "wrong: %d of %d branches in the first part\n", beside, BRANCHES);
            return 1;
        }
        free(alone);
        xs_seg_drop(recording);
        xs_counters left;
        xs_manager_counters(manager, &left);
        if (left.live_blocks || left.live_segments) {
            fprintf(stderr, "wrong: %lld blocks are alive\n", (long long)left.live_blocks);
            return 1;
        }
        xs_manager_drop(manager);
    }
    return 0;
}
