/* The four schedulers, one file each behind xs_scheduler. */
#ifndef XS_SCHEDULERS_H
#define XS_SCHEDULERS_H
#include "../engine/engine.h"
#include "run.h"

enum { NAP_NS = 20000 }; /* the sleep while every source waits for its next tuple */

/* Sets op->only from its edges. */
void op_find_only(xs_op *op);
/* apart.c: marks the ports of a prepared plan. XS_FAILED: no memory. */
int32_t plan_find_apart(xs_plan *plan);

extern const xs_scheduler xs_fifo, xs_fifo_slice, xs_rtc, xs_df;
#endif
