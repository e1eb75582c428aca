/* Sources and sinks that exchange data with a Python thread: blocks of samples in, groups of tuples
 * out. */
#ifndef XS_IO_H
#define XS_IO_H
#include "../engine/operator.h"

/* A segment over the memory of a Python object (an array, a buffer), which it keeps alive. */
xs_seg *xs_seg_of_python(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                         const void *data, int64_t booked, void *object);

/* A feed: blocks of columns from a reader, at most `capacity` of them ahead of the source that cuts them
 * into windows. The two ends may be in different threads. */
typedef struct xs_feed xs_feed;
xs_feed *xs_feed_new(int32_t columns, int64_t capacity);
void xs_feed_drop(xs_feed *feed); /* freed when its source has been freed too */
/* Takes over the counts of one segment per column, all with the same start and width. Waits while the
 * feed is full, at most for patience_ns. Returns 0 if the block was taken, 1 if there is no room yet
 * (the counts stay with the caller), 2 if the feed takes no more blocks. arrived_ns: when the samples
 * arrived, by CLOCK_MONOTONIC; 0 if that is not measured. */
int32_t xs_feed_push(xs_feed *feed, xs_seg **columns, int64_t arrived_ns, int64_t patience_ns);
void xs_feed_close(xs_feed *feed, int32_t failed); /* no more blocks follow; the reader has failed */
void xs_feed_abandon(xs_feed *feed);               /* the feed takes no more blocks */

/* How a source turns a block of several columns into tuples: windows of all columns in one tuple, the
 * windows of each column on a separate port, or one tuple per row (columns with items of eight bytes). */
typedef enum { XS_AS_FIELDS, XS_AS_STREAMS, XS_AS_ROWS } xs_layout;
xs_op *xs_op_feed_source(xs_plan *plan, xs_feed *feed, int32_t layout, int64_t window,
                         int32_t partial);
void xs_feed_source_begin(xs_op *op, int64_t start); /* the index of the first sample */
int64_t xs_feed_source_position(xs_op *op); /* the index after the last emitted sample */

/* Paces another source: every tuple is held until it is due. `inner` produces the tuples, which must
 * enter through xs_op_paced_inlet, connected to each of its ports. */
typedef struct {
    int32_t field;     /* a segment, due at its last sample, or a scalar */
    int32_t is_float;  /* of a scalar */
    double unit_ns;    /* the duration of one sample, or of one unit of the scalar */
    int64_t clock;     /* a Python clock, for xs_io_clock; 0: CLOCK_MONOTONIC */
} xs_pace;
xs_op *xs_op_paced(xs_plan *plan, xs_op *inner, xs_pace pace);
xs_op *xs_op_paced_inlet(xs_op *paced);
int64_t xs_paced_held(xs_op *op); /* samples emitted by the inner source that are still held */

/* A drain: passes the tuples of a stream to a writer, in groups. */
typedef struct xs_drain xs_drain;
typedef struct {
    int64_t tuples, room;
    int64_t bytes;   /* of their segments */
    xs_slot *slots;  /* with a count on every segment */
} xs_group;
xs_drain *xs_drain_new(int32_t fields, uint64_t segments, int64_t capacity);
void xs_drain_drop(xs_drain *drain);
/* The next group, which the caller frees with xs_group_drop; NULL if there was none within
 * patience_ns. After that time a group that is not full is returned as well. */
xs_group *xs_drain_take(xs_drain *drain, int64_t patience_ns);
void xs_group_drop(xs_drain *drain, xs_group *group);
void xs_drain_wake(xs_drain *drain); /* a writer that waits in xs_drain_take returns */
int32_t xs_drain_ended(xs_drain *drain); /* the streams have ended and every group was taken */
void xs_drain_close(xs_drain *drain);    /* as if the streams had ended */
void xs_drain_fail(xs_drain *drain);     /* the writer failed, so the sink fails */
/* While the sink waits for the writer, xs_io_look_up is called with the token. */
void xs_drain_watch(xs_drain *drain, int64_t token);
void xs_drain_prompt(xs_drain *drain);   /* xs_drain_take returns groups that are not full at once */
void xs_drain_abandon(xs_drain *drain);  /* further tuples are dropped, and counted */
/* The starts and widths of the segments of one field, and all their samples in sequence. */
void xs_group_ranges(const xs_drain *drain, const xs_group *group, int32_t field, int64_t *starts,
                     int64_t *widths);
void xs_group_gather(const xs_drain *drain, const xs_group *group, int32_t field, void *out);
xs_op *xs_op_drain_sink(xs_plan *plan, xs_drain *drain);

#endif
