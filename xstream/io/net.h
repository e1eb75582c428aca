/* Sources and sinks on sockets. Python opens sockets, connects and reconnects; the core receives and sends. */
#ifndef XS_NET_H
#define XS_NET_H
#include "io.h"

/* Records as they are on the wire: a value of each field, at an offset. */
typedef enum { XS_PLAIN, XS_SIGNED, XS_UNSIGNED, XS_REAL } xs_value_kind;
typedef struct {
    int32_t offset, bytes; /* of one value */
    int32_t swap;          /* the size of the units whose bytes are in the other order; 0: none */
    int32_t kind;          /* XS_PLAIN: the samples of segments; else a scalar, in a slot of 8 bytes */
    char null[16];         /* a missing sample, or slot */
    int32_t real;          /* bytes of the floating-point numbers that a sample or slot is made of; 0: none */
} xs_record_field;
typedef enum { XS_NAN_KEEP, XS_NAN_ERROR, XS_NAN_ZERO } xs_nan;
typedef struct {
    int64_t bytes;
    int32_t fields;
    int32_t samples; /* per record: more than one if a single field has all channels, interleaved */
    const xs_record_field *field;
    int32_t nan; /* xs_nan: what an intake does with a NaN that it has received */
} xs_record;
/* Records to columns, one array per field, and back. */
void xs_unpack(const xs_record *record, const void *records, int64_t count, void **columns);
void xs_pack(const xs_record *record, const void *const *columns, int64_t count, void *records);
/* Tuples of scalars, one after another, to records. */
void xs_pack_rows(const xs_record *record, const xs_slot *rows, int64_t count, void *records);

/* An intake: what a feed receives from instead of a reader. */
typedef struct xs_intake xs_intake;
typedef enum { XS_GAP_ERROR, XS_GAP_NULL, XS_GAP_SPLIT } xs_gap;
typedef enum {
    XS_NET_BYTES,      /* received, without headers */
    XS_NET_MESSAGES,   /* frames or datagrams that were received whole */
    XS_NET_CUT,        /* frames or records that a connection cut short */
    XS_NET_LOST,       /* datagrams that are missing by their sequence numbers */
    XS_NET_LOST_SAMPLES,
    XS_NET_DUPLICATES,
    XS_NET_REORDERED,  /* datagrams that came early and were put in order */
    XS_NET_LATE,       /* datagrams that came after they were given up, and were left out */
    XS_NET_STRAYS,     /* datagrams with a sequence number far from all others */
    XS_NET_RESTARTS,   /* new beginnings of the sequence numbers */
    XS_NET_MALFORMED,  /* datagrams of a wrong size, which were left out */
    XS_NET_DROPPED,    /* by the operating system, because the buffer of the socket was full */
    XS_NET_COUNTERS
} xs_net_counter;

/* A byte stream (TCP): records one after another, or frames of records, each after its length in bytes
 * (four bytes, little-endian). A frame of length 0 ends the stream. */
typedef struct {
    int32_t framed;
    int64_t max_frame_bytes;
    int64_t window; /* samples; 0: a tuple per frame */
} xs_stream_options;
xs_intake *xs_stream_new(xs_manager *manager, const xs_record *record, xs_stream_options options);

/* Datagrams (UDP): a header with a sequence number, or none, and records. Offsets and sizes of the fields
 * of the header; a size of 0: there is no such field. */
typedef struct {
    int32_t header_bytes;
    int32_t sequence_offset, sequence_bytes, sequence_swap;
    int32_t sample_offset, sample_bytes, sample_swap;
    int64_t max_bytes;    /* of a datagram, with its header */
    int64_t window;       /* samples; 0: a tuple per datagram */
    int64_t max_gap;      /* samples that gap "null" fills at most */
    int32_t gap;          /* xs_gap */
    int32_t reorder;      /* datagrams that wait at most for one that is missing */
    int64_t reorder_ns;   /* and how long they wait */
    int64_t idle_ns;      /* without a datagram: the stream ends; 0: never */
    int32_t ends;         /* whether an empty datagram ends the stream */
    int32_t drop_malformed;
} xs_datagram_options;
xs_intake *xs_datagrams_new(xs_manager *manager, const xs_record *record, xs_datagram_options options);

void xs_intake_drop(xs_intake *intake);
/* Receives all that has arrived, for tests: the number of samples, after every block was read; -1: what was
 * received is wrong. */
int64_t xs_intake_take_all(xs_intake *intake, int64_t wanted);
void xs_feed_receive(xs_feed *feed, xs_intake *intake); /* takes over the intake */
/* The life of a connection, by the thread that opens it: hands over a socket, waits until it is of no
 * more use, and says what comes then. The caller closes the socket, not before xs_intake_wait has
 * returned anything but XS_LINK_UP or the run has ended. */
typedef enum {
    XS_LINK_NONE,   /* waits for a socket */
    XS_LINK_UP,
    XS_LINK_CLOSED, /* the peer closed it between two records or frames */
    XS_LINK_CUT,    /* the peer closed it inside one */
    XS_LINK_BROKEN, /* an error of the operating system: xs_intake_error */
    XS_LINK_ENDED,  /* the stream has ended */
    XS_LINK_FAILED, /* what was received is wrong: xs_intake_message */
} xs_link;
void xs_intake_open(xs_intake *intake, int32_t fd);
int32_t xs_intake_wait(xs_intake *intake, int64_t patience_ns);
void xs_intake_close(xs_intake *intake, int32_t failed); /* there will be no other connection */
int32_t xs_intake_error(const xs_intake *intake);        /* errno */
const char *xs_intake_message(const xs_intake *intake);
void xs_intake_counters(const xs_intake *intake, int64_t *out);

/* A sender: writes the tuples of a drain to a socket. One thread uses it. */
typedef struct xs_sender xs_sender;
typedef struct {
    int32_t framed;
    int64_t max_frame_bytes; /* longer tuples are sent as several frames */
    int32_t datagrams;       /* UDP: instead of a byte stream */
    int32_t sequence;        /* UDP: with a header of a sequence number and an index */
} xs_sender_options;
typedef enum { XS_SENT, XS_SEND_IDLE, XS_SEND_ENDED, XS_SEND_FAILED, XS_SEND_ABANDONED } xs_send_outcome;
xs_sender *xs_sender_new(xs_drain *drain, const xs_record *record, xs_sender_options options);
void xs_sender_drop(xs_sender *sender);
/* Takes a group and sends all of it. After a failure the tuples that were not sent whole are kept and sent
 * through the next socket. */
int32_t xs_sender_send(xs_sender *sender, int32_t fd, int64_t patience_ns);
int32_t xs_sender_finish(xs_sender *sender, int32_t fd); /* the mark of the end */
void xs_sender_abandon(xs_sender *sender); /* from any thread: stop waiting for the peer */
int32_t xs_sender_error(const xs_sender *sender); /* errno */
/* Messages and bytes sent, tuples sent, datagrams that nobody received (refused). */
void xs_sender_counters(const xs_sender *sender, int64_t *out);

#endif
