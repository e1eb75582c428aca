/* FIFO-Slice: the least recently dequeued queue, for as long as a time slice lasts. */
#include "schedulers.h"

/* The number of tuples before the first reading of the clock; later adapted to the slice,
 * because reading the clock costs more than passing a small tuple. */
enum { FIRST_LOOK = 8, LOOK_MAX = 64 };

static int32_t step(xs_plan *plan)
{
    xs_queue *queue = ready_queue_take(plan);
    if (!queue) return XS_END;
    int32_t status = XS_OK;
    int64_t deadline = 0;
    for (int64_t until_look = 1; queue->length && !status;) {
        status = queue_run_one(queue);
        if (--until_look) continue;
        int64_t now = engine_now_ns();
        if (!deadline) {
            deadline = now + plan->slice_ns;
            if (deadline > plan->deadline_ns) deadline = plan->deadline_ns;
            until_look = FIRST_LOOK;
        } else if (now >= deadline) {
            break;
        } else {
            until_look = LOOK_MAX;
        }
    }
    if (queue->length) queue_mark_ready(queue);
    return status;
}

const xs_scheduler xs_fifo_slice = {.step = step};
