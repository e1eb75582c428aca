/* Buffers that operators keep between tuples: a stretch of one signal, and a queue of tuples. */
#ifndef XS_BUFFER_H
#define XS_BUFFER_H
#include "../engine/saving.h"
#include "operators.h"

/* The samples of a stream that are still needed: appended at the end, trimmed at the front. */
typedef struct {
    xs_seg *seg;                      /* NULL: empty */
    int64_t last_start, last_stop;    /* of the last segment received */
    bool begun;
} xs_stretch;

/* Checks that `seg` is the next segment of its stream. Fails with both ranges if there is a gap after
 * the last segment or if `seg` starts before it. Overlap, as produced by rewindow, is allowed. */
int32_t stretch_check(xs_op *op, const xs_stretch *stretch, const xs_seg *seg);
/* Appends the samples of `seg` past the current end, from index `from` on; null segments add none. */
int32_t stretch_add(xs_op *op, xs_stretch *stretch, xs_seg *seg, int64_t from);
/* Drops everything before index `from`. */
int32_t stretch_trim(xs_op *op, xs_stretch *stretch, int64_t from);
void stretch_drop(xs_stretch *stretch);
void stretch_save(xs_image *image, const xs_stretch *stretch);
/* Loads the samples of an input port with one field. */
bool stretch_load(xs_stored *stored, xs_stretch *stretch, int32_t port);

/* Tuples in the order of arrival; each holds references to its segments. */
typedef struct {
    xs_slot *rows;
    int64_t capacity, head, length; /* in tuples; capacity is a power of two */
} xs_backlog;

int32_t backlog_push(xs_op *op, xs_backlog *backlog, const xs_slot *tuple, const xs_shape *shape);
void backlog_pop(xs_backlog *backlog, const xs_shape *shape);
void backlog_drop(xs_backlog *backlog, const xs_shape *shape);
void backlog_save(xs_image *image, const xs_backlog *backlog, const xs_shape *shape);
bool backlog_load(xs_stored *stored, xs_op *op, xs_backlog *backlog, int32_t port);
static inline xs_slot *backlog_front(const xs_backlog *backlog, const xs_shape *shape)
{
    return backlog->rows + backlog->head * shape->fields;
}

/* Emits one segment on `port` and drops the caller's reference. A NULL segment means out of memory. */
int32_t emit_segment(xs_op *op, int32_t port, xs_seg *seg);
#endif
