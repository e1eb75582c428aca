/* Intakes: the part of a feed that receives from a socket, on the thread of the engine. */
#ifndef XS_IO_INTAKE_H
#define XS_IO_INTAKE_H
#include "../engine/engine.h"
#include "monitor.h"
#include "net.h"

/* A block of columns that a source cuts into tuples. */
typedef struct {
    int64_t arrived_ns;      /* its last sample; 0 if that is not measured */
    int64_t step;            /* samples of a message, each of which is a tuple; 0: no messages */
    const int64_t *arrivals; /* by message; NULL: all at arrived_ns */
    bool fresh;              /* does not continue what came before */
    bool missing;            /* stands for samples that were lost */
    xs_seg *column[MAX_FIELDS];
} xs_feed_block;

typedef struct {
    /* The next block, of at least `wanted` samples if it can be helped: XS_OK, XS_WAIT if nothing has
     * come within patience_ns, XS_END, or XS_FAILED with a message. */
    int32_t (*receive)(xs_intake *intake, int64_t wanted, int64_t patience_ns, xs_feed_block *block);
    void (*destroy)(xs_intake *intake);
} xs_intake_table;

struct xs_intake {
    const xs_intake_table *table;
    xs_monitor monitor;
    _Atomic int32_t link; /* xs_link */
    int32_t fd, error;
    xs_manager *manager;
    xs_record record;
    xs_record_field field[MAX_FIELDS];
    bool plain;          /* records are the samples of one segment, as they are */
    int64_t position;    /* the index of the next sample */
    bool spoiled;        /* what comes next is the NaN that ends the stream: `spoiled_at` */
    int64_t spoiled_at;
    int64_t clock_ns;    /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
    _Atomic int64_t counter[XS_NET_COUNTERS];
    char message[256];
};

bool intake_init(xs_intake *intake, const xs_intake_table *table, xs_manager *manager,
                 const xs_record *record);
/* What the table's `receive` returns, with NaNs treated by the policy of the record. */
int32_t intake_receive(xs_intake *intake, int64_t wanted, int64_t patience_ns, xs_feed_block *block);
void intake_lose(xs_intake *intake, xs_link link, int32_t error); /* by the thread of the engine */
int32_t intake_fail(xs_intake *intake, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Waits for a socket, or for data on it. XS_OK: try to receive again; else what `receive` returns. */
int32_t intake_await(xs_intake *intake, int64_t patience_ns);
/* Segments for the columns of a block, to be filled; false without memory. */
bool intake_columns(xs_intake *intake, int64_t samples, xs_feed_block *block);
bool intake_nulls(xs_intake *intake, int64_t samples, xs_feed_block *block); /* missing samples */
bool intake_unpack(xs_intake *intake, const char *records, int64_t count, xs_feed_block *block);
uint64_t intake_number(const char *at, int32_t bytes, int32_t swap); /* of a header; little-endian */
struct msghdr;
/* When the kernel received a message, by CLOCK_MONOTONIC; also reads its count of dropped datagrams. */
int64_t intake_arrival_ns(xs_intake *intake, struct msghdr *message);
static inline void intake_count(xs_intake *intake, xs_net_counter which, int64_t n)
{
    count_add_own(&intake->counter[which], n);
}
#endif
