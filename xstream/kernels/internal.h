/* Internal functions that the files of this directory share. */
#ifndef XS_KERNELS_INTERNAL_H
#define XS_KERNELS_INTERNAL_H
#include "../engine/engine.h"
#include "kernel.h"
#include "rolling.h"

void rolling_free(xs_rolling *rolling);
/* Replaces state k by a rolling segment and frees the previous one. */
bool kernel_keep_rolling(xs_op *op, int32_t k, xs_rolling *rolling);
xs_rolling *kernel_rolling(xs_op *op, int32_t k);

/* The samples of a segment as one contiguous range. A segment of several pieces is joined and stays
 * joined; blocks that may move are pinned in `hold`. NULL if memory ran out. */
const void *kernel_contiguous(xs_seg *seg, xs_block **hold);
/* Frees the state arrays that the last call replaced by larger ones. */
void kernel_free_outgrown(xs_op *op);
int32_t kernel_states(const xs_op *op); /* the number of states */
/* Called when a region takes over the calls of the kernel. Returns whether the kernel must also be
 * called after the last tuple. */
bool kernel_taken_over(xs_op *op);

#endif
