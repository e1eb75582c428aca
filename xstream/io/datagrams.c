/* Datagrams (UDP): received many at a time, straight into the blocks of segments. */
#define _GNU_SOURCE
#include "datagrams.h"

#include <errno.h>
#include <sys/socket.h>

enum {
    BATCH = 64,              /* datagrams per system call */
    HEADER_MOST = 64,
    CONTROL_BYTES = 96,
    BLOCK_BYTES = 256 << 10,
    ARRIVALS = 4 * BATCH,    /* datagrams handed over at once */
    NULLS = 64 << 10,        /* missing samples handed over at once */
};

/* A datagram goes to its slot in the block, behind the one before it, and the part that exceeds the usual
 * size to the spill. So equal datagrams in their order need no copy. */
typedef struct {
    xs_intake in;
    xs_datagram_options options;
    xs_order order;
    xs_seg *seg;
    char *data;                       /* of the block: of the segment, or records to be unpacked */
    char *records;
    int64_t capacity, filled, handed; /* bytes */
    int64_t usual;                    /* bytes of the records of a datagram */
    int64_t step, messages;           /* of those that are not handed over: their samples, their number */
    int64_t arrivals[ARRIVALS];
    int64_t gap_left;                 /* missing samples to be filled in */
    uint64_t sample;                  /* of the header that would follow */
    bool begun, ending, has_waiting;
    xs_datagram waiting;              /* in order, but not added to the block yet */
    char *owned;                      /* its data, if it was held */
    int64_t last_ns;
    /* The last batch: */
    int32_t at, count;
    xs_datagram batch[BATCH];
    bool rescued;                     /* its datagrams are in the spill, not in the block */
    char *spill;
    struct mmsghdr message[BATCH];
    struct iovec part[BATCH][3];
    char header[BATCH][HEADER_MOST];
    char control[BATCH][CONTROL_BYTES];
} xs_datagrams;

/* -- the block ----------------------------------------------------------------------------- */

static char *spill_of(xs_datagrams *from, int32_t i) { return from->spill + i * from->options.max_bytes; }

/* Copies what is left of the batch out of the block, which is about to be used otherwise. */
static void rescue(xs_datagrams *from)
{
    if (from->rescued) return;
    from->rescued = true;
    for (int32_t i = from->at; i < from->count; i++) {
        xs_datagram *datagram = &from->batch[i];
        if (datagram->data == spill_of(from, i)) continue;
        memcpy(spill_of(from, i), datagram->data, (size_t)datagram->bytes);
        datagram->data = spill_of(from, i);
    }
    if (from->has_waiting && !from->owned && from->at) { /* the one taken last */
        xs_datagram *last = &from->waiting;
        char *to = spill_of(from, from->at - 1);
        if (last->data != to) memcpy(to, last->data, (size_t)last->bytes);
        last->data = to;
    }
}

static bool begin_block(xs_datagrams *from, int64_t bytes)
{
    xs_intake *in = &from->in;
    rescue(from);
    if (from->seg) xs_seg_drop(from->seg);
    from->seg = NULL;
    from->filled = from->handed = 0;
    int64_t whole = (bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES) / in->record.bytes;
    from->capacity = whole * in->record.bytes;
    if (!in->plain) {
        from->data = from->records;
        return true;
    }
    int64_t samples = whole * in->record.samples;
    from->seg = xs_seg_new(in->manager, in->position, samples, in->field[0].bytes);
    from->data = from->seg ? xs_seg_own_data(from->seg) : NULL;
    if (!from->data) from->capacity = 0;
    return from->data != NULL;
}

/* Hands over what was added to the block. */
static int32_t hand_over(xs_datagrams *from, xs_feed_block *block)
{
    xs_intake *in = &from->in;
    char *data = from->data + from->handed;
    int64_t count = (from->filled - from->handed) / in->record.bytes;
    int64_t samples = count * in->record.samples;
    *block = (xs_feed_block){.arrived_ns = from->arrivals[from->messages - 1]};
    if (!from->options.window) block->step = from->step, block->arrivals = from->arrivals;
    if (!in->plain) {
        if (!intake_unpack(in, data, count, block)) return intake_fail(in, "out of memory");
    } else {
        if (in->field[0].swap) xs_unpack(&in->record, data, count, (void *[]){data});
        int64_t start = from->seg->start + from->handed / in->record.bytes * in->record.samples;
        block->column[0] = xs_seg_subseg(from->seg, start, samples);
        if (!block->column[0]) return intake_fail(in, "out of memory");
        block->column[0]->start = in->position; /* a block may have gaps */
    }
    from->handed = from->filled;
    from->messages = 0;
    in->position += samples;
    return XS_OK;
}

/* A part of the samples that are missing. */
static int32_t hand_over_nulls(xs_datagrams *from, xs_feed_block *block)
{
    xs_intake *in = &from->in;
    int64_t samples = from->gap_left < NULLS ? from->gap_left : NULLS;
    *block = (xs_feed_block){.arrived_ns = from->last_ns, .missing = true};
    if (!from->options.window) block->step = samples;
    if (!intake_nulls(in, samples, block)) return intake_fail(in, "out of memory");
    from->gap_left -= samples;
    in->position += samples;
    return XS_OK;
}

/* -- one datagram after another ------------------------------------------------------------ */

/* The next datagram in order becomes `waiting`; XS_WAIT if others have to arrive first. */
static int32_t next_datagram(xs_datagrams *from, bool final)
{
    while (!from->has_waiting) {
        if (order_take(&from->order, final, &from->waiting)) {
            from->owned = from->waiting.data;
            from->has_waiting = true;
        } else if (from->at < from->count) {
            xs_datagram *datagram = &from->batch[from->at++];
            xs_order_outcome outcome = ORDER_NEXT;
            if (from->options.sequence_bytes) outcome = order_put(&from->order, datagram);
            if (outcome == ORDER_NO_MEMORY) return intake_fail(&from->in, "out of memory");
            if (outcome != ORDER_NEXT) continue;
            from->waiting = *datagram;
            from->has_waiting = true;
        } else {
            return XS_WAIT;
        }
    }
    return XS_OK;
}

static int64_t samples_of(const xs_datagrams *from, int64_t bytes)
{
    return bytes / from->in.record.bytes * from->in.record.samples;
}

/* The samples between the last datagram and this one, by its index or by the number of lost ones. */
static int64_t gap_before(const xs_datagrams *from, const xs_datagram *next)
{
    const xs_datagram_options *options = &from->options;
    if (!from->begun || next->restarts) return 0;
    if (!options->sample_bytes) return next->lost * samples_of(from, next->bytes ? next->bytes : from->usual);
    int32_t unused = 64 - 8 * options->sample_bytes;
    int64_t gap = (int64_t)((next->sample - from->sample) << unused) >> unused;
    return gap > 0 && gap < (int64_t)1 << 48 ? gap * from->in.record.samples : 0;
}

/* Treats the gap before the waiting datagram by the policy. */
static int32_t pass_gap(xs_datagrams *from)
{
    xs_datagram *next = &from->waiting;
    xs_intake *in = &from->in;
    int64_t gap = gap_before(from, next), lost = next->lost;
    bool first = !from->begun;
    if (first && from->options.sample_bytes == 8 && next->sample < (uint64_t)1 << 61)
        in->position = (int64_t)next->sample * in->record.samples;
    from->begun = true;
    next->lost = 0;
    next->restarts = false;
    from->sample = next->sample;
    if (lost) intake_count(in, XS_NET_LOST_SAMPLES, gap);
    if (lost && from->options.gap == XS_GAP_ERROR)
        return intake_fail(in, "%lld datagrams are missing before number %llu (%lld samples)",
                           (long long)lost, (unsigned long long)next->sequence, (long long)gap);
    if (lost && from->options.gap == XS_GAP_NULL) {
        if (gap > from->options.max_gap)
            return intake_fail(in, "%lld samples are missing before datagram %llu, and max_gap is %lld",
                               (long long)gap, (unsigned long long)next->sequence,
                               (long long)from->options.max_gap);
        from->gap_left = gap;
    } else {
        in->position += gap;
    }
    return XS_OK;
}

/* Adds the waiting datagram to the block; false if what is there has to be handed over first. */
static bool add_waiting(xs_datagrams *from, int32_t *status)
{
    const xs_datagram *next = &from->waiting;
    int64_t samples = samples_of(from, next->bytes);
    bool begins = from->filled == from->handed;
    *status = XS_OK;
    if (!begins && (from->messages == ARRIVALS || (!from->options.window && samples != from->step)))
        return false;
    if (next->bytes > from->capacity - from->filled) {
        if (!begins) return false;
        if (!begin_block(from, next->bytes)) *status = intake_fail(&from->in, "out of memory");
        if (*status) return true;
    }
    char *to = from->data + from->filled;
    if (next->data != to) {
        rescue(from);
        memmove(to, next->data, (size_t)next->bytes);
    }
    from->filled += next->bytes;
    from->step = samples;
    from->arrivals[from->messages++] = next->arrived_ns;
    from->sample += (uint64_t)(next->bytes / from->in.record.bytes);
    from->usual = next->bytes;
    intake_count(&from->in, XS_NET_BYTES, next->bytes);
    intake_count(&from->in, XS_NET_MESSAGES, 1);
    free(from->owned);
    from->owned = NULL;
    from->has_waiting = false;
    return true;
}

/* -- system calls -------------------------------------------------------------------------- */

static int32_t prepare_batch(xs_datagrams *from)
{
    if (from->capacity - from->filled < from->usual && from->filled == from->handed)
        if (!begin_block(from, from->usual)) return -1;
    int64_t room = from->usual ? (from->capacity - from->filled) / from->usual : 0;
    for (int32_t i = 0; i < BATCH; i++) {
        int64_t slot = i < room ? from->usual : 0;
        struct iovec *part = from->part[i];
        int32_t parts = 0;
        if (from->options.header_bytes)
            part[parts++] = (struct iovec){from->header[i], (size_t)from->options.header_bytes};
        if (slot) part[parts++] = (struct iovec){from->data + from->filled + i * slot, (size_t)slot};
        size_t rest = (size_t)(from->options.max_bytes - from->options.header_bytes - slot);
        part[parts++] = (struct iovec){spill_of(from, i) + slot, rest};
        from->message[i].msg_hdr = (struct msghdr){.msg_iov = part, .msg_iovlen = (size_t)parts,
                                                   .msg_control = from->control[i],
                                                   .msg_controllen = CONTROL_BYTES};
        from->batch[i].data = slot ? from->data + from->filled + i * slot : spill_of(from, i);
    }
    from->rescued = false;
    return (int32_t)(room < BATCH ? room : BATCH);
}

/* Reads the headers of the batch; leaves out what is malformed. */
static int32_t check_batch(xs_datagrams *from, int32_t got, int32_t slots)
{
    const xs_datagram_options *options = &from->options;
    int32_t kept = 0;
    for (int32_t i = 0; i < got; i++) {
        struct msghdr *header = &from->message[i].msg_hdr;
        int64_t bytes = (int64_t)from->message[i].msg_len - options->header_bytes;
        int64_t slot = i < slots ? from->usual : 0;
        int64_t arrived_ns = intake_arrival_ns(&from->in, header);
        bool cut = header->msg_flags & MSG_TRUNC;
        if (cut || bytes < 0 || bytes % from->in.record.bytes) {
            intake_count(&from->in, XS_NET_MALFORMED, 1);
            if (options->drop_malformed) continue;
            return intake_fail(&from->in, "a datagram of %s%u bytes has arrived, which is not a header of %d "
                               "bytes and whole records of %lld bytes", cut ? "more than " : "",
                               from->message[i].msg_len, options->header_bytes,
                               (long long)from->in.record.bytes);
        }
        xs_datagram datagram = {.bytes = bytes, .arrived_ns = arrived_ns, .data = from->batch[i].data};
        datagram.sequence = intake_number(from->header[i] + options->sequence_offset,
                                          options->sequence_bytes, options->sequence_swap);
        datagram.sample = intake_number(from->header[i] + options->sample_offset, options->sample_bytes,
                                        options->sample_swap);
        if (slot && bytes > slot) { /* in two parts: joined in the spill */
            memcpy(spill_of(from, i), datagram.data, (size_t)slot);
            datagram.data = spill_of(from, i);
        }
        if (kept < i && datagram.data == spill_of(from, i)) { /* spills go with their places */
            memmove(spill_of(from, kept), datagram.data, (size_t)bytes);
            datagram.data = spill_of(from, kept);
        }
        from->batch[kept++] = datagram;
        from->last_ns = arrived_ns;
    }
    from->at = 0;
    from->count = kept;
    return XS_OK;
}

static int32_t receive_batch(xs_datagrams *from)
{
    from->at = from->count = 0;
    int32_t slots = prepare_batch(from);
    if (slots < 0) return intake_fail(&from->in, "out of memory");
    int got = recvmmsg(from->in.fd, from->message, BATCH, MSG_DONTWAIT, NULL);
    if (got <= 0) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED || !got) return XS_WAIT;
        intake_lose(&from->in, XS_LINK_BROKEN, errno);
        return XS_WAIT;
    }
    return check_batch(from, got, slots);
}

/* -- the intake ---------------------------------------------------------------------------- */

/* Adds datagrams to the block as long as they are there. XS_OK: hand over what is there. */
static int32_t collect(xs_datagrams *from, bool final)
{
    for (;;) {
        int32_t status = next_datagram(from, final);
        if (status) return status;
        const xs_datagram *next = &from->waiting;
        bool jump = !from->begun || next->lost || next->restarts ||
                    (from->options.sample_bytes && next->sample != from->sample);
        if (jump && from->filled > from->handed) return XS_OK;
        if (jump && (status = pass_gap(from))) return status;
        if (from->gap_left) return XS_OK;
        if (!next->bytes) {
            free(from->owned);
            from->owned = NULL;
            from->has_waiting = false;
            from->ending = from->options.ends;
            if (from->ending) return XS_END;
            continue;
        }
        if (!add_waiting(from, &status)) return XS_OK;
        if (status) return status;
    }
}

static bool enough(const xs_datagrams *from, int64_t wanted)
{
    int64_t samples = samples_of(from, from->filled - from->handed);
    return samples && samples >= (from->options.window ? wanted : 1);
}

static int32_t datagrams_receive(xs_intake *in, int64_t wanted, int64_t patience_ns, xs_feed_block *block)
{
    xs_datagrams *from = (xs_datagrams *)in;
    bool final = false;
    for (;;) {
        if (from->gap_left) return hand_over_nulls(from, block);
        int32_t status = from->ending ? XS_END : collect(from, final);
        if (status == XS_FAILED) return status;
        bool some = from->filled > from->handed;
        if (some && (status != XS_WAIT || final || enough(from, wanted))) return hand_over(from, block);
        if (from->gap_left) continue;
        if (status == XS_END || final) {
            intake_lose(in, XS_LINK_ENDED, 0);
            return XS_END;
        }
        if (atomic_load_explicit(&in->link, memory_order_acquire) == XS_LINK_UP) {
            status = receive_batch(from);
            if (status == XS_FAILED) return status;
            if (status == XS_OK) continue;
        }
        bool idle = from->options.idle_ns && from->last_ns &&
                    engine_now_ns() - from->last_ns > from->options.idle_ns;
        if (idle) {
            final = true;
            continue;
        }
        status = intake_await(in, patience_ns);
        if (status) return status;
        patience_ns = 0;
    }
}

static void datagrams_destroy(xs_intake *in)
{
    xs_datagrams *from = (xs_datagrams *)in;
    if (from->seg) xs_seg_drop(from->seg);
    order_free(&from->order);
    free(from->owned);
    free(from->records);
    free(from->spill);
}

static const xs_intake_table table = {.receive = datagrams_receive, .destroy = datagrams_destroy};

xs_intake *xs_datagrams_new(xs_manager *manager, const xs_record *record, xs_datagram_options options)
{
    xs_datagrams *from = calloc(1, sizeof *from);
    if (!from) return NULL;
    from->options = options;
    from->spill = malloc((size_t)(BATCH * options.max_bytes));
    from->records = malloc(BLOCK_BYTES);
    if (!order_init(&from->order, &from->in, &options) || !from->spill || !from->records) {
        order_free(&from->order);
        free(from->spill);
        free(from->records);
        free(from);
        return NULL;
    }
    intake_init(&from->in, &table, manager, record);
    return &from->in;
}
