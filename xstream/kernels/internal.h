/* What the files of this room know of each other. */
#ifndef XS_KERNELS_INTERNAL_H
#define XS_KERNELS_INTERNAL_H
#include "../engine/engine.h"
#include "kernel.h"
#include "rolling.h"

void rolling_free(xs_rolling *rolling);
/* Puts a rolling segment in place of state k, and frees the one that was there. */
bool kernel_keep_rolling(xs_op *op, int32_t k, xs_rolling *rolling);
xs_rolling *kernel_rolling(xs_op *op, int32_t k);

/* The samples of a segment in one range, which a segment of several pieces becomes and keeps; blocks
 * that may move are held. NULL when memory ran out. */
const void *kernel_contiguous(xs_seg *seg, xs_block **hold);
/* Frees the state arrays that the kernel's last call has outgrown. */
void kernel_free_outgrown(xs_op *op);
int32_t kernel_states(const xs_op *op); /* how many it has */
/* From now on a region calls the kernel: returns whether that is to happen at the end as well. */
bool kernel_taken_over(xs_op *op);

#endif
