/* Datagrams in the order of their sequence numbers. */
#ifndef XS_IO_DATAGRAMS_H
#define XS_IO_DATAGRAMS_H
#include "intake.h"

typedef struct {
    uint64_t sequence, sample; /* as in its header */
    int64_t bytes;             /* of its records; 0: the end of the stream */
    int64_t arrived_ns;
    int64_t lost;              /* datagrams that are missing before it */
    bool restarts;             /* the sequence numbers begin anew with it */
    char *data;
} xs_datagram;

/* What was delivered last, and datagrams that came too early. */
typedef struct {
    xs_intake *in;
    int32_t sequence_bytes, most; /* most: datagrams that are held */
    int64_t patience_ns;
    bool begun, final;
    uint64_t expected;
    int64_t passed;         /* numbers since the first one, which may be lost or delivered */
    uint64_t stray_next;    /* would follow a stray; two in a row are a new beginning */
    bool has_stray;
    uint64_t seen[64];      /* bits of the last 4096 numbers before `expected` */
    xs_datagram *held;      /* sorted; each owns its data */
    int32_t length;
    int64_t held_since_ns;
} xs_order;

bool order_init(xs_order *order, xs_intake *in, const xs_datagram_options *options);
void order_free(xs_order *order);
typedef enum { ORDER_NEXT, ORDER_LATER, ORDER_NO_MEMORY } xs_order_outcome;
/* Takes a datagram that has arrived. ORDER_NEXT: it is the next one. ORDER_LATER: it is held, or was a
 * duplicate, late or a stray. */
xs_order_outcome order_put(xs_order *order, xs_datagram *datagram);
/* The next held datagram, if it is its turn, or if its predecessors are given up: too many are held, or
 * `final`, or they have waited for too long. The caller frees its data. */
bool order_take(xs_order *order, bool final, xs_datagram *datagram);
#endif
