/* FIFO: one tuple from the least recently dequeued queue (section III.C.2, a time slice of 0). */
#include "schedulers.h"

static int32_t step(xs_plan *plan)
{
    xs_queue *queue = ready_queue_take(plan);
    if (!queue) return XS_END;
    int32_t status = queue_run_one(queue);
    if (queue->length) queue_mark_ready(queue);
    return status;
}

const xs_scheduler xs_fifo = {.step = step};
