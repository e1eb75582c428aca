/* What operators keep between tuples: a stretch of one signal, and tuples whose turn will come. */
#ifndef XS_BUFFER_H
#define XS_BUFFER_H
#include "../engine/engine.h"
#include "operators.h"

/* The samples of a stream that are still wanted, grown at the end and trimmed in front. */
typedef struct {
    xs_seg *seg;                      /* NULL: none are */
    int64_t last_start, last_stop;    /* of the last segment that came */
    bool begun;
} xs_stretch;

/* Is `seg` the next of its stream? Fails, naming both ranges, where it leaves a gap behind the
 * last one or goes back before it. Overlap is what rewindow makes, and fine. */
int32_t stretch_check(xs_op *op, const xs_stretch *stretch, const xs_seg *seg);
/* Adds what `seg` has behind the end, from index `from` on. Null segments add nothing. */
int32_t stretch_add(xs_op *op, xs_stretch *stretch, xs_seg *seg, int64_t from);
/* Forgets everything before index `from`. */
int32_t stretch_trim(xs_op *op, xs_stretch *stretch, int64_t from);
void stretch_drop(xs_stretch *stretch);

/* Tuples in the order in which they came, each with counts of its own on its segments. */
typedef struct {
    xs_slot *rows;
    int64_t capacity, head, length; /* in tuples; capacity is a power of two */
} xs_backlog;

int32_t backlog_push(xs_op *op, xs_backlog *backlog, const xs_slot *tuple, const xs_shape *shape);
void backlog_pop(xs_backlog *backlog, const xs_shape *shape);
void backlog_drop(xs_backlog *backlog, const xs_shape *shape);
static inline xs_slot *backlog_front(const xs_backlog *backlog, const xs_shape *shape)
{
    return backlog->rows + backlog->head * shape->fields;
}

/* Emits one segment on `port`, and gives up the caller's count on it. NULL: there was no memory. */
int32_t emit_segment(xs_op *op, int32_t port, xs_seg *seg);
#endif
