/* The operators that are written in C. */
#ifndef XS_OPERATORS_H
#define XS_OPERATORS_H
#include "../engine/operator.h"

/* Each constructor adds one operator to the plan and returns it, or NULL if memory ran out. The shapes
 * of input and output ports are set afterwards (xs_plan_shape_in, xs_plan_shape_out). */
xs_op *xs_op_pass(xs_plan *plan);
xs_op *xs_op_count(xs_plan *plan);
xs_op *xs_op_collect(xs_plan *plan);

/* Windows of a recording: `window` samples every `window` samples, the whole recording `repeat` times
 * (< 0: forever), with increasing indices. With `partial`, the very last window may be shorter.
 * offered_hz > 0: samples arrive at that rate from the first call on. */
xs_op *xs_op_array_source(xs_plan *plan, xs_seg *recording, int64_t window, int64_t repeat,
                          int32_t partial, double offered_hz);
/* The same recording as one scalar tuple per sample, to measure the engine without segments. */
xs_op *xs_op_sample_source(xs_plan *plan, xs_seg *recording, int32_t type, int64_t repeat);
/* An array of `count` prepared tuples. The caller keeps the tuples and their segments alive. */
xs_op *xs_op_list_source(xs_plan *plan, const xs_slot *tuples, int64_t count);

/* Index i of one signal is, at the same time, index shift + ceil((num * i + rest) / den) of another. */
typedef struct {
    int64_t num, den, rest, shift;
} xs_scale;

/* Operators that move segments without touching their samples. */
xs_op *xs_op_rewindow(xs_plan *plan, int64_t width, int64_t gap, int32_t flush);
xs_op *xs_op_dewindow(xs_plan *plan);
xs_op *xs_op_zip(xs_plan *plan, int32_t ports);
xs_op *xs_op_union(xs_plan *plan);
/* Merges streams in the order of an integer field, which ascends in each of them. With `tagged`, the
 * number of the stream is put in front of each tuple. */
xs_op *xs_op_ordered(xs_plan *plan, int32_t ports, int32_t field, int32_t tagged);
xs_op *xs_op_select(xs_plan *plan, int32_t fields, const int32_t *chosen);
/* Divides a stream by an integer field: equal values go to one output port. */
xs_op *xs_op_partition(xs_plan *plan, int32_t field);
/* flagged: control tuples are (keep, start, stop); otherwise (start, stop). Ranges are scaled to the
 * indices of each stream. */
xs_op *xs_op_gate(xs_plan *plan, int32_t flagged, const xs_scale *scale);
xs_op *xs_op_sync(xs_plan *plan, int32_t streams, int32_t flush, const xs_scale *scales);
/* Windows of the first stream, each with the samples of the others at the same time. */
xs_op *xs_op_align(xs_plan *plan, int32_t others, const xs_scale *scales);
/* unique: a key occurs once on each side. */
xs_op *xs_op_join(xs_plan *plan, int32_t left_key, int32_t right_key, int32_t unique);
xs_op *xs_op_deinterleave(xs_plan *plan, int32_t channels);

/* A field that an operator reads as a column, and the type of its samples (or of the number). */
typedef enum {
    XS_COLUMN_INT64, XS_COLUMN_FLOAT64, XS_COLUMN_BOOL, XS_COLUMN_INT8, XS_COLUMN_UINT8,
    XS_COLUMN_INT16, XS_COLUMN_UINT16, XS_COLUMN_INT32, XS_COLUMN_UINT32, XS_COLUMN_FLOAT32
} xs_column_type;
typedef struct {
    int32_t field, type;
} xs_column;

/* Aggregated values of groups of rows, several in one pass, each of one column (-1 for none). */
typedef enum {
    XS_COUNT, XS_SUM, XS_MEAN, XS_STD, XS_MIN, XS_MAX, XS_FIRST, XS_LAST, XS_DISTINCT, XS_APPLY
} xs_aggregate_kind;
typedef struct {
    int32_t kind, column, real; /* of floats; otherwise of integers */
    xs_op *kernel;              /* XS_APPLY: called on the values of a group in a window */
} xs_aggregate_value;

/* What to aggregate. Windows consist of `per` panes and begin every `every` panes. Pane p starts at
 * the time that the scale `pane` gives for p, or with row p * pane_rows of its group. */
typedef enum { XS_TIME_OF_SAMPLE = -2 } xs_time_column;
typedef struct {
    int32_t columns, keys, values;
    const xs_column *column;
    const int32_t *key_column;
    const xs_aggregate_value *value;
    int32_t windowed;   /* otherwise the whole stream is one window */
    int32_t time_column; /* or XS_TIME_OF_SAMPLE */
    xs_scale pane;
    int64_t pane_rows, per, every, lateness;
    int32_t change;     /* report on every change; otherwise when a window closes */
    int32_t drop_late;  /* count and drop late rows; otherwise fail */
    int32_t empty;      /* also report windows without rows */
} xs_aggregate;
xs_op *xs_op_aggregate(xs_plan *plan, const xs_aggregate *how);
/* Windows of n rows of a group. With `sampled`, rows are numbered by the indices of samples. */
xs_op *xs_op_aggregate_rows(xs_plan *plan, const xs_aggregate *how, int32_t sampled);
/* The kernel that raised an error in either operator, or NULL. */
xs_op *xs_aggregate_raised(xs_op *op);
xs_op *xs_aggregate_rows_raised(xs_op *op);

/* A keyed table that streams read and update, and its use by one port. Rows are 64-bit words: keys,
 * then values. */
typedef enum { XS_ASSIGN_SET, XS_ASSIGN_ADD, XS_ASSIGN_MIN, XS_ASSIGN_MAX } xs_assign_kind;
typedef enum { XS_MISSING_DEFAULT, XS_MISSING_DROP, XS_MISSING_ERROR } xs_missing_kind;
typedef enum { XS_REMOVE_ALWAYS = -2, XS_REMOVE_NEVER } xs_remove_kind;
typedef struct {
    int32_t value, how;       /* the value of the row; xs_assign_kind */
    int32_t real, from_whole; /* a float; converted from an integer */
    int32_t field;            /* field of the tuple; -1: `constant` */
    xs_slot constant;
} xs_assignment;
typedef struct {
    int32_t updates;          /* otherwise it looks up */
    int32_t order;            /* the field that orders the uses, -1 for none */
    int32_t keys, fields, assignments;
    const int32_t *key;       /* fields of the tuple that form the key */
    const int32_t *field;     /* values of the row to append to the tuple */
    const xs_assignment *assignment;
    int32_t flagged;          /* emit whether the row exists, before the values */
    int32_t missing;          /* xs_missing_kind */
    int32_t removes;          /* the field that tells whether to remove the row, or xs_remove_kind */
} xs_use;
xs_op *xs_op_relation(xs_plan *plan, int32_t keys, int32_t values, int32_t ports, int32_t ordered);
int32_t xs_relation_use(xs_op *op, int32_t number, const xs_use *use);
int32_t xs_relation_fill(xs_op *op, const int64_t *rows, int64_t count);
const int64_t *xs_relation_rows(xs_op *op, int64_t *count);

/* Holds tuples of port 0 until port 1 received one whose field is at least theirs, or equal to it. */
xs_op *xs_op_wait_for(xs_plan *plan, int32_t held, int32_t awaited, int32_t equal, int32_t flush);
/* Holds tuples until `amount` more arrived, or until the field `time` (-1: none) advanced by it. */
xs_op *xs_op_delay(xs_plan *plan, int64_t amount, int32_t time, int32_t stamped);
/* Drops tuples while the operator's queue is longer than `limit`, in tuples or in the field `time`. */
typedef enum { XS_SHED_OLDEST, XS_SHED_NEWEST, XS_SHED_RANDOM, XS_SHED_KEY } xs_shed_policy;
xs_op *xs_op_shed(xs_plan *plan, int64_t limit, int32_t time, int32_t policy, int32_t key,
                  int64_t seed);

/* Results of sinks. */
int64_t xs_collected(xs_op *op);
const xs_slot *xs_collected_tuple(xs_op *op, int64_t number);

#endif
