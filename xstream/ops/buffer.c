/* Buffers of samples and of tuples: see buffer.h. */
#include "buffer.h"

/* -- stretches ----------------------------------------------------------------------------- */

int32_t stretch_check(xs_op *op, const xs_stretch *stretch, const xs_seg *seg)
{
    if (!stretch->begun) return XS_OK;
    if (likely(seg->start <= stretch->last_stop && seg->start >= stretch->last_start)) return XS_OK;
    const char *what = seg->start > stretch->last_stop ? "leaves a gap behind" : "goes back before";
    return op_fail(op, "[%lld, %lld) %s [%lld, %lld)", (long long)seg->start,
                   (long long)seg_stop(seg), what, (long long)stretch->last_start,
                   (long long)stretch->last_stop);
}

int32_t stretch_add(xs_op *op, xs_stretch *stretch, xs_seg *seg, int64_t from)
{
    if (!seg->width) return XS_OK;
    int32_t status = stretch_check(op, stretch, seg);
    if (status) return status;
    int64_t stop = seg_stop(seg);
    if (stretch->begun && from < stretch->last_stop) from = stretch->last_stop;
    if (from < seg->start) from = seg->start;
    stretch->last_start = seg->start;
    if (!stretch->begun || stop > stretch->last_stop) stretch->last_stop = stop;
    stretch->begun = true;
    if (from >= stop) return XS_OK;
    xs_seg *fresh = from > seg->start ? xs_seg_subseg(seg, from, stop - from) : xs_seg_ref(seg);
    if (!fresh) return op_out_of_memory(op);
    if (!stretch->seg) {
        stretch->seg = fresh;
        return XS_OK;
    }
    xs_seg *joined = xs_seg_append(stretch->seg, fresh);
    xs_seg_drop(fresh);
    if (!joined) return op_out_of_memory(op);
    xs_seg_drop(stretch->seg);
    stretch->seg = joined;
    return XS_OK;
}

int32_t stretch_trim(xs_op *op, xs_stretch *stretch, int64_t from)
{
    xs_seg *seg = stretch->seg;
    if (!seg || from <= seg->start) return XS_OK;
    xs_seg *rest = NULL;
    if (from < seg_stop(seg)) {
        rest = xs_seg_subseg(seg, from, seg_stop(seg) - from);
        if (!rest) return op_out_of_memory(op);
    }
    xs_seg_drop(seg);
    stretch->seg = rest;
    return XS_OK;
}

void stretch_drop(xs_stretch *stretch)
{
    if (stretch->seg) xs_seg_drop(stretch->seg);
    stretch->seg = NULL;
}

void stretch_save(xs_image *image, const xs_stretch *stretch)
{
    save_int(image, stretch->begun);
    save_int(image, stretch->last_start);
    save_int(image, stretch->last_stop);
    save_segment(image, stretch->seg);
}

bool stretch_load(xs_stored *stored, xs_stretch *stretch, int32_t port)
{
    if (!load_flag(stored, &stretch->begun) ||
        !load_range(stored, &stretch->last_start, -INDEX_END, INDEX_END) ||
        !load_range(stored, &stretch->last_stop, stretch->last_start, INDEX_END) ||
        !load_segment(stored, port, 0, &stretch->seg))
        return false;
    const xs_seg *seg = stretch->seg;
    bool fits = !seg || (stretch->begun && seg->width && seg_stop(seg) == stretch->last_stop);
    return fits || load_refused(stored, "its samples do not fit their range");
}

/* -- backlogs ------------------------------------------------------------------------------ */

enum { BACKLOG_MIN = 8, BACKLOG_KEEP = 4096 }; /* tuples; a larger one is freed when empty */

static bool backlog_grow(xs_backlog *backlog, int32_t fields)
{
    int64_t capacity = backlog->capacity ? 2 * backlog->capacity : BACKLOG_MIN;
    size_t row = (size_t)fields * sizeof(xs_slot);
    xs_slot *rows = malloc((size_t)capacity * row);
    if (!rows) return false;
    int64_t before_wrap = backlog->capacity - backlog->head;
    if (backlog->length < before_wrap) before_wrap = backlog->length;
    if (backlog->length) {
        memcpy(rows, backlog->rows + backlog->head * fields, (size_t)before_wrap * row);
        memcpy(rows + before_wrap * fields, backlog->rows,
               (size_t)(backlog->length - before_wrap) * row);
    }
    free(backlog->rows);
    *backlog = (xs_backlog){.rows = rows, .capacity = capacity, .length = backlog->length};
    return true;
}

int32_t backlog_push(xs_op *op, xs_backlog *backlog, const xs_slot *tuple, const xs_shape *shape)
{
    if (backlog->length == backlog->capacity && !backlog_grow(backlog, shape->fields))
        return op_out_of_memory(op);
    int64_t at = (backlog->head + backlog->length++) & (backlog->capacity - 1);
    memcpy(backlog->rows + at * shape->fields, tuple, (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
    return XS_OK;
}

void backlog_pop(xs_backlog *backlog, const xs_shape *shape)
{
    tuple_drop(backlog_front(backlog, shape), shape->segments);
    backlog->head = (backlog->head + 1) & (backlog->capacity - 1);
    if (--backlog->length == 0 && backlog->capacity > BACKLOG_KEEP) {
        free(backlog->rows);
        *backlog = (xs_backlog){0};
    }
}

void backlog_drop(xs_backlog *backlog, const xs_shape *shape)
{
    while (backlog->length) backlog_pop(backlog, shape);
    free(backlog->rows);
    *backlog = (xs_backlog){0};
}

void backlog_save(xs_image *image, const xs_backlog *backlog, const xs_shape *shape)
{
    save_int(image, backlog->length);
    for (int64_t i = 0; i < backlog->length; i++) {
        int64_t at = (backlog->head + i) & (backlog->capacity - 1);
        save_tuple(image, backlog->rows + at * shape->fields, shape);
    }
}

bool backlog_load(xs_stored *stored, xs_op *op, xs_backlog *backlog, int32_t port)
{
    const xs_shape *shape = &op->in_shape[port];
    xs_slot tuple[MAX_FIELDS];
    int64_t length;
    if (!load_count(stored, 8, &length)) return false;
    for (int64_t i = 0; i < length; i++) {
        if (!load_tuple(stored, port, tuple)) return false;
        int32_t status = backlog_push(op, backlog, tuple, shape);
        tuple_drop(tuple, shape->segments);
        if (status) return load_refused(stored, "no memory is left");
    }
    return true;
}

int32_t emit_segment(xs_op *op, int32_t port, xs_seg *seg)
{
    if (unlikely(!seg)) return op_out_of_memory(op);
    xs_slot tuple = {.seg = seg};
    int32_t status = emit_giving(op, port, &tuple, &tuple);
    tuple_drop(&tuple, 1);
    return status;
}
