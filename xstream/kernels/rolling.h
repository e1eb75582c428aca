/* Segments that a kernel keeps between calls: samples are appended at the end and cut at the front. */
#ifndef XS_ROLLING_H
#define XS_ROLLING_H
#include "kernel.h"

/* The layout that compiled code reads (xstream/kernels/_rolling.py): functions, then the range. */
typedef struct xs_rolling xs_rolling;
typedef enum {
    XS_ROLLING_ROOM,   /* char *(*)(xs_rolling *, int64_t width): memory for `width` new samples */
    XS_ROLLING_APPEND, /* int64_t (*)(xs_rolling *, int64_t width): appends the first of them */
    XS_ROLLING_CUT,    /* int64_t (*)(xs_rolling *, int64_t start): drops samples before `start` */
    XS_ROLLING_AT,   /* char *(*)(xs_rolling *, int64_t start, int64_t width) */
    XS_ROLLING_START,
    XS_ROLLING_STOP,
    XS_ROLLING_WORDS
} xs_rolling_word;

/* Makes state k a rolling segment: `width` samples from index `start`, copied from `bytes`. */
int32_t xs_kernel_rolling(xs_op *op, int32_t k, int64_t start, int64_t width, int64_t itemsize,
                          const void *bytes);
/* Copies the samples of state k to `out`. */
void xs_rolling_read(xs_op *op, int32_t k, void *out);
int64_t xs_rolling_start(xs_op *op, int32_t k);
int64_t xs_rolling_width(xs_op *op, int32_t k);

#endif
