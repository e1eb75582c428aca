/* Sources and sinks whose other end is a thread of Python: blocks of samples in, groups of tuples out. */
#ifndef XS_IO_H
#define XS_IO_H
#include "../engine/operator.h"

/* A segment over the memory of a Python object (an array, a buffer), which it keeps alive. */
xs_seg *xs_seg_of_python(xs_manager *manager, int64_t start, int64_t width, int64_t itemsize,
                         const void *data, int64_t booked, void *object);

/* A feed: blocks of columns from a reader, at most `capacity` of them ahead of the source that cuts them
 * into windows. Both ends may be in different threads. */
typedef struct xs_feed xs_feed;
xs_feed *xs_feed_new(int32_t columns, int64_t capacity);
void xs_feed_drop(xs_feed *feed); /* lives on until its source has gone */
/* Takes over the counts of one segment a column, all of them with one start and width. Waits while the
 * feed is full, at most for patience_ns: 0 where it was taken, 1 where there is no room yet (the
 * counts stay with the caller), 2 where nobody takes any more. arrived_ns: when the samples came in,
 * by CLOCK_MONOTONIC; 0 where that is of no interest. */
int32_t xs_feed_push(xs_feed *feed, xs_seg **columns, int64_t arrived_ns, int64_t patience_ns);
void xs_feed_close(xs_feed *feed, int32_t failed); /* nothing more will come; the reader has failed */
void xs_feed_abandon(xs_feed *feed);               /* nobody takes any more */

/* How a source makes tuples of a block with several columns: windows of all columns in one tuple, those
 * of each column on a port of its own, or one tuple a row (columns of eight bytes an item). */
typedef enum { XS_AS_FIELDS, XS_AS_STREAMS, XS_AS_ROWS } xs_layout;
xs_op *xs_op_feed_source(xs_plan *plan, xs_feed *feed, int32_t layout, int64_t window,
                         int32_t partial);
void xs_feed_source_begin(xs_op *op, int64_t start); /* the index of the first sample that comes */
int64_t xs_feed_source_position(xs_op *op); /* the index behind the last sample that was emitted */

/* Paces another source: every tuple is held until it is due. `inner` is asked for tuples, which must
 * come in through xs_op_paced_inlet, connected to every port of it. */
typedef struct {
    int32_t field;     /* a segment, whose last sample decides, or a scalar */
    int32_t is_float;  /* of a scalar */
    double unit_ns;    /* what one sample, or one unit of the scalar, takes */
    int64_t clock;     /* a clock of Python's, for xs_io_clock; 0: CLOCK_MONOTONIC */
} xs_pace;
xs_op *xs_op_paced(xs_plan *plan, xs_op *inner, xs_pace pace);
xs_op *xs_op_paced_inlet(xs_op *paced);
int64_t xs_paced_held(xs_op *op); /* samples that the inner source has emitted and this has not */

/* A drain: tuples of a stream in groups, to a writer. */
typedef struct xs_drain xs_drain;
typedef struct {
    int64_t tuples, room;
    int64_t bytes;   /* of their segments */
    xs_slot *slots;  /* with a count on every segment */
} xs_group;
xs_drain *xs_drain_new(int32_t fields, uint64_t segments, int64_t capacity);
void xs_drain_drop(xs_drain *drain);
/* The next group, which the caller gives back with xs_group_drop; NULL where none came within
 * patience_ns. What is not full yet is taken too if it has waited so long. */
xs_group *xs_drain_take(xs_drain *drain, int64_t patience_ns);
void xs_group_drop(xs_drain *drain, xs_group *group);
int32_t xs_drain_ended(xs_drain *drain); /* the streams have ended and every group was taken */
void xs_drain_close(xs_drain *drain);    /* as if the streams had ended */
void xs_drain_fail(xs_drain *drain);     /* the writer cannot go on: so does the sink fail */
/* Starts and widths of the segments of one field, and all their samples one behind another. */
void xs_group_ranges(const xs_drain *drain, const xs_group *group, int32_t field, int64_t *starts,
                     int64_t *widths);
void xs_group_gather(const xs_drain *drain, const xs_group *group, int32_t field, void *out);
xs_op *xs_op_drain_sink(xs_plan *plan, xs_drain *drain);

#endif
