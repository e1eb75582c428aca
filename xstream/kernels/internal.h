/* What the files of this room know of each other. */
#ifndef XS_KERNELS_INTERNAL_H
#define XS_KERNELS_INTERNAL_H
#include "../engine/engine.h"
#include "rolling.h"

void rolling_free(xs_rolling *rolling);
/* Puts a rolling segment in place of state k, and frees the one that was there. */
bool kernel_keep_rolling(xs_op *op, int32_t k, xs_rolling *rolling);
xs_rolling *kernel_rolling(xs_op *op, int32_t k);
#endif
