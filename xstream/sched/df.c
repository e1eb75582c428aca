/* DF, depth first: successors are called by reference as soon as a tuple is emitted (pass() in
 * ../engine/engine.h does it, for all edges that prepare marked as direct). Tuples that had to be
 * queued, at edges that close a cycle and below very deep calls, are processed here, the least
 * recently processed operator first. */
#include "schedulers.h"

static int32_t step(xs_plan *plan)
{
    xs_op *op = plan->ready_op_head;
    if (!op) return XS_END;
    ready_op_remove(op);
    return op_run_waiting(op);
}

const xs_scheduler xs_df = {.step = step, .by_operator = true, .direct = true};
