/* Byte streams (TCP): records, or frames of records, received straight into the blocks of segments. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>

#include "intake.h"

enum {
    PREFIX = 4,               /* bytes of the length of a frame */
    BLOCK_BYTES = 256 << 10,  /* several windows share a block of about this size */
    BLOCK_MOST = 4 << 20,     /* a longer window is joined from several blocks */
    STAGE_BYTES = 64 << 10,   /* small frames are received many at a time, and copied from there */
    SMALL_FRAME = 16 << 10,
    CONTROL_BYTES = 128,
};

typedef struct {
    xs_intake in;
    xs_stream_options options;
    /* The block that is being filled: a segment, or records that are unpacked when they are handed over. */
    xs_seg *seg;
    char *data;
    int64_t capacity, filled, handed; /* bytes */
    char *records;
    int64_t records_bytes;
    /* The frame that is being received; without frames it never ends. */
    bool in_frame;
    bool lost, fresh; /* the connection has ended; what comes next is from another one */
    int64_t frame_bytes, frame_left;
    char prefix[PREFIX];
    int64_t prefix_bytes;
    char *stage;
    int64_t stage_at, stage_end;
    int64_t arrived_ns;
} xs_stream;

/* -- the block ----------------------------------------------------------------------------- */

static int64_t block_bytes(const xs_stream *stream)
{
    const xs_record *record = &stream->in.record;
    if (!stream->options.window) return stream->frame_bytes;
    int64_t room = BLOCK_BYTES / record->bytes, most = BLOCK_MOST / record->bytes;
    int64_t window = (stream->options.window + record->samples - 1) / record->samples;
    if (window > most) return (most ? most : 1) * record->bytes;
    return (window < room ? room / window * window : window) * record->bytes;
}

/* A new block, when the one before was handed over. */
static bool begin_block(xs_stream *stream)
{
    xs_intake *in = &stream->in;
    int64_t bytes = block_bytes(stream);
    stream->filled = stream->handed = 0;
    stream->capacity = bytes;
    if (!in->plain) {
        if (bytes > stream->records_bytes) {
            char *records = realloc(stream->records, (size_t)bytes);
            if (!records) return false;
            stream->records = records;
            stream->records_bytes = bytes;
        }
        stream->data = stream->records;
        return true;
    }
    int64_t samples = bytes / in->record.bytes * in->record.samples;
    stream->seg = xs_seg_new(in->manager, in->position, samples, in->field[0].bytes);
    stream->data = stream->seg ? xs_seg_own_data(stream->seg) : NULL;
    return stream->data != NULL;
}

static void end_block(xs_stream *stream)
{
    if (stream->seg) xs_seg_drop(stream->seg);
    stream->seg = NULL;
    stream->data = NULL;
    stream->filled = stream->handed = stream->capacity = 0;
}

/* Hands over `count` records of the block. */
static int32_t hand_over(xs_stream *stream, int64_t count, xs_feed_block *block)
{
    xs_intake *in = &stream->in;
    int64_t samples = count * in->record.samples, bytes = count * in->record.bytes;
    char *from = stream->data + stream->handed;
    *block = (xs_feed_block){.arrived_ns = stream->arrived_ns, .fresh = stream->fresh};
    block->step = stream->options.window ? 0 : samples;
    if (!in->plain) {
        if (!intake_unpack(in, from, count, block)) return intake_fail(in, "out of memory");
    } else {
        if (in->field[0].swap) xs_unpack(&in->record, from, count, (void *[]){from});
        bool all = !stream->handed && bytes == stream->capacity;
        block->column[0] = all ? xs_seg_ref(stream->seg)
                               : xs_seg_subseg(stream->seg, in->position, samples);
        if (!block->column[0]) return intake_fail(in, "out of memory");
    }
    stream->fresh = false;
    stream->handed += bytes;
    in->position += samples;
    if (stream->handed == stream->capacity) end_block(stream);
    return XS_OK;
}

/* The number of records to hand over now; 0: more has to come. */
static int64_t ready_records(const xs_stream *stream, int64_t wanted)
{
    const xs_record *record = &stream->in.record;
    int64_t count = (stream->filled - stream->handed) / record->bytes;
    if (!stream->data || !count) return 0;
    if (!stream->options.window) return stream->frame_left ? 0 : count;
    if (stream->filled == stream->capacity) return count;
    if (count * record->samples < wanted) return 0;
    int64_t more = (count * record->samples - wanted) / stream->options.window;
    int64_t samples = wanted + more * stream->options.window;
    int64_t whole = (samples + record->samples - 1) / record->samples;
    return whole < count ? whole : count;
}

/* -- bytes --------------------------------------------------------------------------------- */

/* A length has arrived: checks it and begins the frame. */
static int32_t begin_frame(xs_stream *stream)
{
    xs_intake *in = &stream->in;
    const unsigned char *byte = (const unsigned char *)stream->prefix;
    int64_t bytes = (int64_t)(byte[0] | byte[1] << 8 | byte[2] << 16 | (uint32_t)byte[3] << 24);
    stream->prefix_bytes = 0;
    if (!bytes) {
        stream->lost = true;
        intake_lose(in, XS_LINK_ENDED, 0);
        return XS_OK;
    }
    if (bytes > stream->options.max_frame_bytes)
        return intake_fail(in, "the peer announces a frame of %lld bytes, and max_frame_bytes is %lld",
                           (long long)bytes, (long long)stream->options.max_frame_bytes);
    if (bytes % in->record.bytes)
        return intake_fail(in, "the peer announces a frame of %lld bytes, which is no multiple of the "
                           "%lld bytes of a record", (long long)bytes, (long long)in->record.bytes);
    stream->in_frame = true;
    stream->frame_bytes = stream->frame_left = bytes;
    return XS_OK;
}

/* Bytes were put into the block. */
static void block_filled(xs_stream *stream, int64_t bytes)
{
    stream->filled += bytes;
    intake_count(&stream->in, XS_NET_BYTES, bytes);
    if (!stream->options.framed) return;
    stream->frame_left -= bytes;
    if (stream->frame_left) return;
    stream->in_frame = false;
    intake_count(&stream->in, XS_NET_MESSAGES, 1);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Uses bytes that were received beyond the end of a frame. */
static int32_t take_staged(xs_stream *stream)
{
    const char *from = stream->stage + stream->stage_at;
    int64_t left = stream->stage_end - stream->stage_at;
    if (!stream->in_frame) {
        int64_t bytes = smaller(left, PREFIX - stream->prefix_bytes);
        memcpy(stream->prefix + stream->prefix_bytes, from, (size_t)bytes);
        stream->prefix_bytes += bytes;
        stream->stage_at += bytes;
        return stream->prefix_bytes == PREFIX ? begin_frame(stream) : XS_OK;
    }
    int64_t bytes = smaller(left, smaller(stream->frame_left, stream->capacity - stream->filled));
    memcpy(stream->data + stream->filled, from, (size_t)bytes);
    stream->stage_at += bytes;
    block_filled(stream, bytes);
    return XS_OK;
}

/* The connection has ended; whole records that are left are handed over before the next one. */
static int32_t lose(xs_stream *stream, int32_t error)
{
    int64_t begun = (stream->filled - stream->handed) % stream->in.record.bytes;
    bool inside = stream->options.framed ? stream->in_frame || stream->prefix_bytes : begun != 0;
    if (inside) intake_count(&stream->in, XS_NET_CUT, 1);
    if (!stream->options.window) stream->filled = stream->handed; /* half a frame is no tuple */
    stream->filled -= (stream->filled - stream->handed) % stream->in.record.bytes;
    stream->prefix_bytes = 0;
    stream->stage_at = stream->stage_end = 0;
    stream->in_frame = !stream->options.framed;
    stream->frame_left = stream->in_frame ? INT64_MAX : 0;
    stream->lost = true;
    intake_lose(&stream->in, error ? XS_LINK_BROKEN : inside ? XS_LINK_CUT : XS_LINK_CLOSED, error);
    return XS_OK;
}

/* Receives into the block, and what follows the frame into the stage: no more than the next length if
 * frames are long, so that the payload of the next one is not copied. */
static int32_t receive_bytes(xs_stream *stream)
{
    xs_intake *in = &stream->in;
    struct iovec parts[2];
    int32_t count = 0;
    int64_t room = 0;
    if (stream->in_frame) {
        room = smaller(stream->frame_left, stream->capacity - stream->filled);
        parts[count++] = (struct iovec){stream->data + stream->filled, (size_t)room};
    }
    if (stream->options.framed && (!stream->in_frame || room == stream->frame_left)) {
        int64_t ahead = stream->frame_bytes >= SMALL_FRAME ? PREFIX - stream->prefix_bytes : STAGE_BYTES;
        parts[count++] = (struct iovec){stream->stage, (size_t)ahead};
    }
    char control[CONTROL_BYTES];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count, .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(in->fd, &message, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return XS_WAIT;
    if (got <= 0) return lose(stream, got ? errno : 0);
    stream->arrived_ns = intake_arrival_ns(in, &message);
    int64_t filled = smaller(got, room);
    stream->stage_at = 0;
    stream->stage_end = got - filled;
    if (filled) block_filled(stream, filled);
    return XS_OK;
}

/* -- the intake ---------------------------------------------------------------------------- */

/* After a connection: the records that are left; 0 if there are none, and the next one begins anew. */
static int64_t left_records(xs_stream *stream)
{
    int64_t count = (stream->filled - stream->handed) / stream->in.record.bytes;
    if (stream->data && count) return count;
    end_block(stream);
    stream->lost = false;
    stream->fresh = true;
    return 0;
}

static int32_t stream_receive(xs_intake *in, int64_t wanted, int64_t patience_ns, xs_feed_block *block)
{
    xs_stream *stream = (xs_stream *)in;
    for (;;) {
        int64_t count = ready_records(stream, wanted);
        if (!count && stream->lost) count = left_records(stream);
        if (count) return hand_over(stream, count, block);
        int32_t status = XS_WAIT;
        if (atomic_load_explicit(&in->link, memory_order_acquire) == XS_LINK_UP) {
            if (stream->in_frame && !stream->data && !begin_block(stream))
                return intake_fail(in, "out of memory");
            bool staged = stream->stage_at < stream->stage_end;
            status = staged ? take_staged(stream) : receive_bytes(stream);
            if (status == XS_FAILED) return status;
        }
        if (status == XS_WAIT) {
            status = intake_await(in, patience_ns);
            if (status) return status;
            patience_ns = 0;
        }
    }
}

static void stream_destroy(xs_intake *in)
{
    xs_stream *stream = (xs_stream *)in;
    if (stream->seg) xs_seg_drop(stream->seg);
    free(stream->records);
    free(stream->stage);
}

static const xs_intake_table table = {.receive = stream_receive, .destroy = stream_destroy};

xs_intake *xs_stream_new(xs_manager *manager, const xs_record *record, xs_stream_options options)
{
    xs_stream *stream = calloc(1, sizeof *stream);
    char *stage = malloc(STAGE_BYTES);
    if (!stream || !stage) {
        free(stream);
        free(stage);
        return NULL;
    }
    intake_init(&stream->in, &table, manager, record);
    stream->options = options;
    stream->stage = stage;
    stream->in_frame = !options.framed;
    stream->frame_left = stream->in_frame ? INT64_MAX : 0;
    return &stream->in;
}
