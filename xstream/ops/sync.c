/* sync: cuts the same time ranges out of several streams. A control stream requests ranges, in order;
 * the streams are buffered by appending until all of them cover the next range (XStream, section
 * III.A; DETECTAUDIO). Ranges are in indices of the control stream, and each stream has a scale from
 * those to its own indices. */
#include "buffer.h"
#include "scale.h"

typedef struct {
    xs_stretch stretch;
    xs_scale scale;
    int64_t first; /* first index of the stream */
    int64_t discarded; /* samples before it are discarded */
    int64_t itemsize;
} xs_sync_stream;

typedef struct {
    xs_op op;
    xs_sync_stream *stream;
    int32_t streams;
    xs_backlog requests;
    int64_t discarded; /* everything before it is discarded */
    bool flush;
} xs_sync;

enum { KEEP, START, STOP };

static int32_t outside(xs_sync *sync, int32_t stream, int64_t index)
{
    return op_fail(&sync->op, "%lld lies outside the indices of stream %d, which end at 2**62",
                   (long long)index, stream);
}

/* Trims a stream only if at least half of it can go, because a trim may copy the rest. */
static int32_t discard(xs_sync *sync, int64_t stop)
{
    if (stop <= sync->discarded) return XS_OK;
    sync->discarded = stop;
    int32_t status = XS_OK;
    for (int32_t i = 0; i < sync->streams && !status; i++) {
        xs_sync_stream *stream = &sync->stream[i];
        if (!scale_index(&stream->scale, stop, &stream->discarded)) return outside(sync, i, stop);
        xs_seg *seg = stream->stretch.seg;
        if (seg && stream->discarded >= seg->start + seg->width / 2)
            status = stretch_trim(&sync->op, &stream->stretch, stream->discarded);
    }
    return status;
}

/* Checks a request. XS_WAIT: a stream does not reach the end of the range yet. */
static int32_t check_request(xs_sync *sync, const xs_slot *request)
{
    long long start = request[START].i, stop = request[STOP].i;
    if (start < sync->discarded)
        return op_fail(&sync->op, "start %lld of [%lld, %lld) has been discarded: nothing before "
                       "%lld is kept", start, start, stop, (long long)sync->discarded);
    int32_t status = XS_OK;
    for (int32_t i = 0; i < sync->streams; i++) {
        const xs_sync_stream *stream = &sync->stream[i];
        int64_t from, to;
        if (!scale_index(&stream->scale, start, &from)) return outside(sync, i, start);
        if (!scale_index(&stream->scale, stop, &to)) return outside(sync, i, stop);
        if (stream->stretch.begun && from < stream->first)
            return op_fail(&sync->op, "start %lld of [%lld, %lld) lies before the first sample of "
                           "stream %d, %lld", start, start, stop, i, (long long)stream->first);
        if (!stream->stretch.begun || stream->stretch.last_stop < to) status = XS_WAIT;
    }
    return status;
}

/* Serves a request that was checked. */
static int32_t emit_range(xs_sync *sync, int64_t from, int64_t to)
{
    xs_slot tuple[MAX_FIELDS];
    int32_t cut = 0, status = XS_OK;
    for (; cut < sync->streams; cut++) {
        const xs_sync_stream *stream = &sync->stream[cut];
        int64_t start, stop;
        scale_index(&stream->scale, from, &start);
        scale_index(&stream->scale, to, &stop);
        int64_t width = stop - start;
        tuple[cut].seg = width ? xs_seg_subseg(stream->stretch.seg, start, width)
                               : xs_seg_new(sync->op.plan->manager, start, 0, stream->itemsize);
        if (!tuple[cut].seg) break;
    }
    status = cut == sync->streams ? emit(&sync->op, 0, tuple) : op_out_of_memory(&sync->op);
    while (cut) xs_seg_drop(tuple[--cut].seg);
    return status;
}

static int32_t serve(xs_sync *sync)
{
    const xs_shape *shape = &sync->op.in_shape[0];
    while (sync->requests.length) {
        const xs_slot *request = backlog_front(&sync->requests, shape);
        int64_t start = request[START].i, stop = request[STOP].i;
        int32_t status;
        if (request[KEEP].i) {
            status = check_request(sync, request);
            if (status == XS_WAIT) return XS_OK;
            if (!status) status = emit_range(sync, start, stop);
        } else {
            status = discard(sync, stop);
        }
        if (status) return status;
        backlog_pop(&sync->requests, shape);
    }
    return XS_OK;
}

static int32_t sync_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_sync *sync = (xs_sync *)op;
    int32_t status;
    if (port == 0) {
        if (tuple[STOP].i < tuple[START].i)
            return op_fail(op, "a range stops at %lld, before its start at %lld",
                           (long long)tuple[STOP].i, (long long)tuple[START].i);
        status = backlog_push(op, &sync->requests, tuple, &op->in_shape[0]);
    } else {
        xs_sync_stream *stream = &sync->stream[port - 1];
        if (!tuple->seg->width) return XS_OK;
        if (!stream->stretch.begun) {
            stream->first = tuple->seg->start;
            stream->itemsize = tuple->seg->itemsize;
        }
        status = stretch_add(op, &stream->stretch, tuple->seg, stream->discarded);
    }
    return status ? status : serve(sync);
}

/* At the end, requests that still wait get the samples that are available. */
static int32_t sync_finish(xs_op *op)
{
    xs_sync *sync = (xs_sync *)op;
    const xs_shape *shape = &op->in_shape[0];
    int64_t end = INT64_MAX;
    for (int32_t i = 0; i < sync->streams; i++) {
        const xs_sync_stream *stream = &sync->stream[i];
        if (!stream->stretch.begun) return XS_OK;
        int64_t covered = scale_back(&stream->scale, stream->stretch.last_stop);
        if (covered < end) end = covered;
    }
    int32_t status = XS_OK;
    for (; sync->flush && sync->requests.length && !status; backlog_pop(&sync->requests, shape)) {
        xs_slot *request = backlog_front(&sync->requests, shape);
        if (!request[KEEP].i) status = discard(sync, request[STOP].i);
        if (!request[KEEP].i || request[START].i >= end) continue;
        if (request[STOP].i > end) request[STOP].i = end;
        status = check_request(sync, request);
        if (!status) status = emit_range(sync, request[START].i, request[STOP].i);
    }
    return status;
}

static void sync_destroy(xs_op *op)
{
    xs_sync *sync = (xs_sync *)op;
    for (int32_t i = 0; i < sync->streams; i++) stretch_drop(&sync->stream[i].stretch);
    free(sync->stream);
    free(sync->requests.rows); /* control tuples carry no segments */
}

static void sync_save(xs_op *op, xs_image *image)
{
    const xs_sync *sync = (xs_sync *)op;
    save_int(image, sync->discarded);
    backlog_save(image, &sync->requests, &op->in_shape[0]);
    for (int32_t i = 0; i < sync->streams; i++) {
        save_int(image, sync->stream[i].first);
        stretch_save(image, &sync->stream[i].stretch);
    }
}

/* All samples that were not discarded are there. */
static bool stream_fits(const xs_sync *sync, xs_sync_stream *stream)
{
    const xs_stretch *stretch = &stream->stretch;
    bool any = sync->discarded > INT64_MIN;
    if (any && !scale_index(&stream->scale, sync->discarded, &stream->discarded)) return false;
    int64_t needed = stream->discarded > stream->first ? stream->discarded : stream->first;
    return !stretch->begun || (stretch->seg ? stretch->seg->start : stretch->last_stop) <= needed;
}

static bool sync_load(xs_op *op, xs_stored *stored)
{
    xs_sync *sync = (xs_sync *)op;
    if (!load_int(stored, &sync->discarded) || !backlog_load(stored, op, &sync->requests, 0)) return false;
    for (int64_t i = 0; i < sync->requests.length; i++) { /* from its beginning: it was empty */
        const xs_slot *request = sync->requests.rows + i * op->in_shape[0].fields;
        if (request[STOP].i < request[START].i) return load_refused(stored, "a range ends before its start");
    }
    for (int32_t i = 0; i < sync->streams; i++) {
        xs_sync_stream *stream = &sync->stream[i];
        if (!load_int(stored, &stream->first) || !stretch_load(stored, &stream->stretch, i + 1) ||
            !stream_fits(sync, stream))
            return false;
        stream->itemsize = load_itemsize(stored, i + 1, 0);
    }
    return true;
}

static const xs_op_table sync_table = {
    .process = sync_process, .finish = sync_finish, .destroy = sync_destroy,
    .save = sync_save, .load = sync_load};

xs_op *xs_op_sync(xs_plan *plan, int32_t streams, int32_t flush, const xs_scale *scales)
{
    xs_sync_stream *stream = calloc((size_t)streams, sizeof *stream);
    xs_sync *sync = stream ? op_new(plan, sizeof *sync, &sync_table) : NULL;
    if (!sync) {
        free(stream);
        return NULL;
    }
    for (int32_t i = 0; i < streams; i++) {
        stream[i].scale = scales[i];
        stream[i].discarded = INT64_MIN;
    }
    sync->stream = stream;
    sync->streams = streams;
    sync->discarded = INT64_MIN;
    sync->flush = flush;
    return &sync->op;
}
