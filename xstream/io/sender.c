/* Senders: the tuples of a drain as frames, plain bytes or datagrams, straight from their segments. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "../engine/engine.h"
#include "net.h"

enum {
    MESSAGES = 64,           /* at most in one batch */
    PARTS = 4 * MESSAGES,    /* ranges of memory in one batch; a message has PIECES at most */
    PIECES = 8,
    HEADER = 16,
    PACK_BYTES = 256 << 10,  /* of records that are packed for one batch */
    LOOK_MS = 50,            /* while waiting for the peer */
    END_DATAGRAMS = 3,       /* one of them should arrive */
    ROWS_BYTES = 64 << 10,   /* of a frame of rows */
};

typedef struct {
    char header[HEADER];
    int64_t tuple, record; /* where the next message begins */
    int32_t first, parts;
} xs_message;

struct xs_sender {
    xs_drain *drain;
    xs_sender_options options;
    xs_record record;
    xs_record_field field[MAX_FIELDS];
    bool plain, rows;
    int32_t header_bytes;
    int64_t most;               /* records in a message */
    xs_group *group;            /* being sent, from this tuple and this record of it on */
    int64_t tuple, at;
    char *packed;
    int64_t packed_bytes, packed_room;
    xs_message message[MESSAGES];
    struct iovec part[PARTS];
    xs_block *hold[PARTS];
    int32_t messages, parts, holds;
    uint64_t sequence, sample;
    int32_t error;
    _Atomic int32_t abandoned;
    _Atomic int64_t counter[4];
};
enum { SENT_MESSAGES, SENT_BYTES, SENT_TUPLES, REFUSED };

xs_sender *xs_sender_new(xs_drain *drain, const xs_record *record, xs_sender_options options)
{
    xs_sender *sender = calloc(1, sizeof *sender);
    if (!sender) return NULL;
    sender->drain = drain;
    sender->options = options;
    sender->record = *record;
    memcpy(sender->field, record->field, (size_t)record->fields * sizeof *record->field);
    sender->record.field = sender->field;
    sender->rows = sender->field[0].kind != XS_PLAIN;
    sender->plain = record->fields == 1 && !sender->rows && !sender->field[0].swap;
    sender->header_bytes = options.datagrams ? (options.sequence ? HEADER : 0) : options.framed ? 4 : 0;
    int64_t room = options.max_frame_bytes - (options.datagrams ? sender->header_bytes : 0);
    if (!options.framed && !options.datagrams) room = sender->plain ? INT64_MAX : PACK_BYTES;
    if (sender->rows && room > ROWS_BYTES) room = ROWS_BYTES;
    sender->most = room < record->bytes ? 1 : room / record->bytes;
    return sender;
}

void xs_sender_drop(xs_sender *sender)
{
    xs_group_drop(sender->drain, sender->group);
    free(sender->packed);
    free(sender);
}

void xs_sender_abandon(xs_sender *sender) { atomic_store(&sender->abandoned, 1); }
int32_t xs_sender_error(const xs_sender *sender) { return sender->error; }

void xs_sender_counters(const xs_sender *sender, int64_t *out)
{
    for (int32_t i = 0; i < 4; i++)
        out[i] = atomic_load_explicit(&((xs_sender *)sender)->counter[i], memory_order_relaxed);
}

static void count(xs_sender *sender, int32_t which, int64_t n)
{
    count_add_own(&sender->counter[which], n);
}

/* -- messages ------------------------------------------------------------------------------ */

static void put_number(char *to, uint64_t number, int32_t bytes)
{
    for (int32_t i = 0; i < bytes; i++) to[i] = (char)(number >> 8 * i);
}

/* Begins a message of so many records; its parts follow. */
static xs_message *begin_message(xs_sender *sender, int64_t records, uint64_t sample)
{
    xs_message *message = &sender->message[sender->messages++];
    message->first = sender->parts;
    message->parts = 0;
    if (sender->options.datagrams) {
        put_number(message->header, sender->sequence++, 8);
        put_number(message->header + 8, sample, 8);
    } else {
        put_number(message->header, (uint64_t)(records * sender->record.bytes), 4);
    }
    if (sender->header_bytes) {
        sender->part[sender->parts++] = (struct iovec){message->header, (size_t)sender->header_bytes};
        message->parts++;
    }
    return message;
}

static void add_part(xs_sender *sender, xs_message *message, const void *data, int64_t bytes)
{
    sender->part[sender->parts++] = (struct iovec){(void *)data, (size_t)bytes};
    message->parts++;
}

static bool has_room(const xs_sender *sender)
{
    return sender->messages < MESSAGES && sender->parts + PIECES + 1 <= PARTS &&
           sender->holds + PIECES <= PARTS;
}

/* Memory for packed records. It moves only while no message refers to it. */
static char *room_to_pack(xs_sender *sender, int64_t bytes)
{
    if (bytes > sender->packed_room - sender->packed_bytes) {
        if (sender->packed_bytes) return NULL;
        int64_t room = bytes > PACK_BYTES ? bytes : PACK_BYTES;
        char *packed = realloc(sender->packed, (size_t)room);
        if (!packed) return NULL;
        sender->packed = packed;
        sender->packed_room = room;
    }
    char *at = sender->packed + sender->packed_bytes;
    sender->packed_bytes += bytes;
    return at;
}

/* The samples of a segment as one range. */
static const char *held(xs_sender *sender, xs_seg *seg)
{
    xs_block *hold;
    const char *data = xs_seg_hold(seg, &hold);
    if (data) sender->hold[sender->holds++] = hold;
    return data;
}

/* A segment of several pieces that fits into one message. */
static bool add_pieces(xs_sender *sender, xs_seg *seg, xs_message *message)
{
    for (int64_t piece = 0, pieces = xs_seg_pieces(seg); piece < pieces; piece++) {
        int64_t width;
        const void *data = xs_seg_hold_piece(seg, piece, &width, &sender->hold[sender->holds]);
        if (!data) return false;
        sender->holds++;
        add_part(sender, message, data, width * seg->itemsize);
    }
    return true;
}

/* All fields of a tuple as records; NULL: no memory, or no more in this batch. */
static const char *pack_tuple(xs_sender *sender, const xs_slot *tuple, int64_t records, int64_t from)
{
    const void *columns[MAX_FIELDS];
    xs_block *holds[MAX_FIELDS];
    char *packed = room_to_pack(sender, records * sender->record.bytes);
    int32_t fields = sender->record.fields, done = 0;
    for (; packed && done < fields; done++) {
        const char *data = xs_seg_hold(tuple[done].seg, &holds[done]);
        if (!data) break;
        columns[done] = data + from * sender->field[done].bytes;
    }
    bool whole = packed && done == fields;
    if (whole) xs_pack(&sender->record, columns, records, packed);
    while (packed && done--) xs_block_unhold(holds[done]);
    return whole ? packed : NULL;
}

/* Adds a message with records of the current tuple, a segment for each field. */
static bool add_samples(xs_sender *sender, const xs_slot *tuple)
{
    xs_seg *seg = tuple[0].seg;
    int64_t left = seg->width - sender->at, records = left < sender->most ? left : sender->most;
    int64_t bytes = records * sender->record.bytes;
    const char *data = NULL;
    bool pieces = sender->plain && records == seg->width && xs_seg_pieces(seg) <= PIECES;
    if (!sender->plain) {
        data = pack_tuple(sender, tuple, records, sender->at);
    } else if (!pieces) {
        data = held(sender, seg);
        if (data) data += sender->at * seg->itemsize;
    }
    if (!pieces && !data) return false;
    xs_message *message = begin_message(sender, records, (uint64_t)(seg->start + sender->at));
    if (pieces && !add_pieces(sender, seg, message)) return false;
    if (data) add_part(sender, message, data, bytes);
    sender->at += records;
    sender->sample = (uint64_t)(seg->start + sender->at);
    if (sender->at == seg->width) sender->tuple++, sender->at = 0;
    message->tuple = sender->tuple;
    message->record = sender->at;
    return true;
}

/* Adds a message with as many rows as fit into it. */
static bool add_rows(xs_sender *sender)
{
    const xs_group *group = sender->group;
    int64_t left = group->tuples - sender->tuple, rows = left < sender->most ? left : sender->most;
    char *packed = room_to_pack(sender, rows * sender->record.bytes);
    if (!packed) return false;
    xs_pack_rows(&sender->record, group->slots + sender->tuple * sender->record.fields, rows, packed);
    xs_message *message = begin_message(sender, rows, sender->sample);
    add_part(sender, message, packed, rows * sender->record.bytes);
    sender->sample += (uint64_t)rows;
    sender->tuple += rows;
    message->tuple = sender->tuple;
    message->record = 0;
    return true;
}

static void end_batch(xs_sender *sender)
{
    while (sender->holds) xs_block_unhold(sender->hold[--sender->holds]);
    sender->messages = sender->parts = 0;
    sender->packed_bytes = 0;
}

/* The next messages of the group. XS_FAILED: no memory, or a tuple that is not made of records. */
static int32_t build_batch(xs_sender *sender)
{
    const xs_group *group = sender->group;
    while (sender->tuple < group->tuples && has_room(sender)) {
        if (sender->rows) {
            if (!add_rows(sender)) break;
            continue;
        }
        const xs_slot *tuple = group->slots + sender->tuple * sender->record.fields;
        for (int32_t i = 1; i < sender->record.fields; i++)
            if (tuple[i].seg->start != tuple[0].seg->start || tuple[i].seg->width != tuple[0].seg->width) {
                sender->error = EINVAL;
                return XS_FAILED;
            }
        if (!tuple[0].seg->width) sender->tuple++;
        else if (!add_samples(sender, tuple)) break;
    }
    if (sender->messages || sender->tuple == group->tuples) return XS_OK;
    sender->error = ENOMEM;
    return XS_FAILED;
}

/* -- the socket ---------------------------------------------------------------------------- */

/* Waits until the socket takes more: XS_OK, or XS_END if the sender is abandoned. */
static int32_t await_peer(xs_sender *sender, int32_t fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    poll(&waiting, 1, LOOK_MS);
    return atomic_load(&sender->abandoned) ? XS_END : XS_OK;
}

static bool try_again(int32_t error)
{
    return error == EAGAIN || error == EINTR || error == ENOBUFS;
}

/* Sends the parts of all messages in sequence; `sent` becomes the number of whole messages. */
static int32_t send_bytes(xs_sender *sender, int32_t fd, int32_t *sent)
{
    int32_t at = 0;
    while (at < sender->parts) {
        struct msghdr header = {.msg_iov = sender->part + at, .msg_iovlen = (size_t)(sender->parts - at)};
        ssize_t done = sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && !try_again(errno)) {
            sender->error = errno;
            return XS_FAILED;
        }
        if (done < 0 && await_peer(sender, fd)) return XS_END;
        for (; done > 0; at++) {
            struct iovec *part = &sender->part[at];
            size_t taken = part->iov_len < (size_t)done ? part->iov_len : (size_t)done;
            part->iov_base = (char *)part->iov_base + taken;
            part->iov_len -= taken;
            done -= (ssize_t)taken;
            if (part->iov_len) break;
        }
        while (*sent < sender->messages) {
            const xs_message *message = &sender->message[*sent];
            if (message->first + message->parts > at) break;
            ++*sent;
        }
    }
    return XS_OK;
}

/* One datagram per message. Nobody may be there to receive it. */
static int32_t send_datagrams(xs_sender *sender, int32_t fd, int32_t *sent)
{
    struct mmsghdr headers[MESSAGES];
    for (int32_t i = 0; i < sender->messages; i++) {
        const xs_message *message = &sender->message[i];
        headers[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = sender->part + message->first,
                                                  .msg_iovlen = (size_t)message->parts}};
    }
    while (*sent < sender->messages) {
        int done = sendmmsg(fd, headers + *sent, (unsigned)(sender->messages - *sent),
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done >= 0) {
            *sent += done;
        } else if (errno == ECONNREFUSED) {
            count(sender, REFUSED, 1); /* an earlier one; this one was not sent yet */
        } else if (!try_again(errno)) {
            sender->error = errno;
            return XS_FAILED;
        } else if (await_peer(sender, fd)) {
            return XS_END;
        }
    }
    return XS_OK;
}

static int64_t bytes_of(const xs_sender *sender, const xs_message *message)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < message->parts; i++)
        bytes += (int64_t)sender->part[message->first + i].iov_len;
    return bytes;
}

/* Sends the batch. Where it fails, the next one begins with the message that was not sent whole. */
static int32_t send_batch(xs_sender *sender, int32_t fd, int64_t tuple, int64_t at)
{
    int64_t bytes[MESSAGES];
    int32_t sent = 0;
    for (int32_t i = 0; i < sender->messages; i++) bytes[i] = bytes_of(sender, &sender->message[i]);
    int32_t status = sender->options.datagrams ? send_datagrams(sender, fd, &sent)
                                               : send_bytes(sender, fd, &sent);
    const xs_message *last = sent ? &sender->message[sent - 1] : NULL;
    for (int32_t i = 0; i < sent; i++) count(sender, SENT_BYTES, bytes[i]);
    count(sender, SENT_MESSAGES, sent);
    count(sender, SENT_TUPLES, last ? last->tuple - tuple : 0);
    if (status) {
        sender->tuple = last ? last->tuple : tuple;
        sender->at = last ? last->record : at;
    }
    end_batch(sender);
    return status;
}

int32_t xs_sender_send(xs_sender *sender, int32_t fd, int64_t patience_ns)
{
    if (!sender->group) {
        if (xs_drain_ended(sender->drain)) return XS_SEND_ENDED;
        sender->group = xs_drain_take(sender->drain, patience_ns);
        if (!sender->group) return XS_SEND_IDLE;
        sender->tuple = sender->at = 0;
    }
    while (sender->tuple < sender->group->tuples) {
        int64_t tuple = sender->tuple, at = sender->at;
        int32_t status = build_batch(sender);
        if (status) end_batch(sender);
        else status = send_batch(sender, fd, tuple, at);
        if (status) return status == XS_END ? XS_SEND_ABANDONED : XS_SEND_FAILED;
    }
    xs_group_drop(sender->drain, sender->group);
    sender->group = NULL;
    return XS_SENT;
}

int32_t xs_sender_finish(xs_sender *sender, int32_t fd)
{
    if (!sender->options.datagrams && !sender->options.framed) return XS_SENT;
    int32_t copies = sender->options.datagrams ? END_DATAGRAMS : 1, sent = 0, status = XS_OK;
    uint64_t sequence = sender->sequence;
    for (int32_t i = 0; i < copies && !status; i++, sent = 0) {
        sender->sequence = sequence;
        begin_message(sender, 0, sender->sample);
        status = sender->options.datagrams ? send_datagrams(sender, fd, &sent)
                                           : send_bytes(sender, fd, &sent);
        end_batch(sender);
    }
    return !status ? XS_SENT : status == XS_END ? XS_SEND_ABANDONED : XS_SEND_FAILED;
}
