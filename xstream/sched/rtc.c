/* RTC, run to completion: drain an operator's queues, then continue with one of its successors. */
#include "schedulers.h"

static xs_op *waiting_successor(const xs_op *op)
{
    for (int32_t port = 0; port < op->outs; port++)
        for (int32_t i = 0; i < op->out[port].edges; i++)
            if (op->out[port].edge[i].to->ready) return op->out[port].edge[i].to;
    return NULL;
}

static int32_t step(xs_plan *plan)
{
    xs_op *op = plan->ready_op_head;
    if (!op) return XS_END;
    /* A cycle might never end: after this many operators the pending ones run. */
    for (int32_t turns = plan->ops + 1; op && turns; turns--) {
        ready_op_remove(op);
        int32_t status = op_run_waiting(op);
        if (status || plan->overdue) return status;
        op = waiting_successor(op);
    }
    return XS_OK;
}

const xs_scheduler xs_rtc = {.step = step, .by_operator = true};
