/* Segments that a kernel keeps between calls: appended to at the end, cut at the front. */
#ifndef XS_ROLLING_H
#define XS_ROLLING_H
#include "kernel.h"

/* What compiled code reads (xstream/kernels/_rolling.py): four functions, then what is kept. */
typedef struct xs_rolling xs_rolling;
typedef enum {
    XS_ROLLING_ROOM,   /* char *(*)(xs_rolling *, int64_t width): a place for `width` new samples */
    XS_ROLLING_APPEND, /* int64_t (*)(xs_rolling *, int64_t width): the first of them are kept */
    XS_ROLLING_CUT,    /* int64_t (*)(xs_rolling *, int64_t start): drops what lies before `start` */
    XS_ROLLING_AT,   /* char *(*)(xs_rolling *, int64_t start, int64_t width) */
    XS_ROLLING_START,
    XS_ROLLING_STOP,
    XS_ROLLING_WORDS
} xs_rolling_word;

/* State k is such a segment: `width` samples from index `start`, set from `bytes`. */
int32_t xs_kernel_rolling(xs_op *op, int32_t k, int64_t start, int64_t width, int64_t itemsize,
                          const void *bytes);
/* Copies the samples of state k to `out`. */
void xs_rolling_read(xs_op *op, int32_t k, void *out);
int64_t xs_rolling_start(xs_op *op, int32_t k);
int64_t xs_rolling_width(xs_op *op, int32_t k);

#endif
