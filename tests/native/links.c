/* Two plans with a socket between them, and all the threads of sources and sinks: a reader hands blocks to
 * a feed, a sender takes groups from a drain, a link opens sockets for an intake, a writer checks what
 * arrives, and one more thread reads the counters meanwhile.
 *
 *     reader -> feed, plan, drain -> sender -> socket -> intake, plan, drain -> writer
 *
 * Exits with 1 if samples are missing or out of order, or if something is alive at the end.
 *
 *     links [blocks]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/engine.h"
#include "io/net.h"
#include "sched/run.h"

enum { BLOCK = 1000, WINDOW = 96, ITEM = 4, PATIENCE_NS = 5000000 };

/* No plan here has operators in Python. */
int32_t xs_python_process(int64_t token) { return (int32_t)token; }
int32_t xs_python_produce(int64_t token) { return (int32_t)token; }
int32_t xs_python_finish(int64_t token) { return (int32_t)token; }
int32_t xs_io_look_up(int64_t token) { return token < 0; }
int64_t xs_io_clock(int64_t token, int64_t due_ns) { return token ? due_ns : 0; }

typedef struct {
    xs_manager *manager;
    int64_t blocks;
    bool stopped; /* halfway, by the writer */
    xs_feed *feed;
    xs_drain *out, *in;
    xs_sender *sender;
    xs_intake *intake;
    xs_plan *sending, *receiving;
    int socket[2];
    int64_t received;
    bool wrong;
    _Atomic bool over;
} xs_links;

static void *read_blocks(void *of)
{
    xs_links *links = of;
    for (int64_t block = 0; block < links->blocks; block++) {
        xs_seg *seg = xs_seg_new(links->manager, block * BLOCK, BLOCK, ITEM);
        int32_t *samples = xs_seg_own_data(seg);
        for (int32_t i = 0; i < BLOCK; i++) samples[i] = (int32_t)(block * BLOCK + i);
        int32_t outcome;
        while ((outcome = xs_feed_push(links->feed, &seg, 0, PATIENCE_NS)) == 1)
            ;
        if (outcome) {
            xs_seg_drop(seg);
            return NULL;
        }
    }
    xs_feed_close(links->feed, 0);
    return NULL;
}

static void *run_plan(void *plan)
{
    while (xs_plan_run(plan, 1000000) != XS_END)
        ;
    return NULL;
}

static void *send_groups(void *of)
{
    xs_links *links = of;
    int32_t outcome = XS_SENT;
    while (outcome == XS_SENT || outcome == XS_SEND_IDLE)
        outcome = xs_sender_send(links->sender, links->socket[0], PATIENCE_NS);
    if (outcome == XS_SEND_ENDED) xs_sender_finish(links->sender, links->socket[0]);
    shutdown(links->socket[0], SHUT_WR);
    return NULL;
}

static void *keep_link(void *of)
{
    xs_links *links = of;
    xs_intake_open(links->intake, links->socket[1]);
    while (xs_intake_wait(links->intake, PATIENCE_NS) == XS_LINK_UP && !atomic_load(&links->over))
        ;
    xs_intake_close(links->intake, 0);
    return NULL;
}

static void *read_counters(void *of)
{
    xs_links *links = of;
    int64_t sent[4], received[XS_NET_COUNTERS];
    while (!atomic_load(&links->over)) {
        xs_sender_counters(links->sender, sent);
        xs_intake_counters(links->intake, received);
        usleep(200);
    }
    return NULL;
}

static void stop(xs_links *links)
{
    atomic_store(&links->sending->stop, true);
    atomic_store(&links->receiving->stop, true);
    xs_feed_abandon(links->feed);
    xs_sender_abandon(links->sender);
    xs_drain_abandon(links->out);
}

static void *check_samples(void *of)
{
    xs_links *links = of;
    while (!xs_drain_ended(links->in)) {
        xs_group *group = xs_drain_take(links->in, PATIENCE_NS);
        if (!group) continue;
        int32_t *samples = malloc((size_t)group->bytes);
        xs_group_gather(links->in, group, 0, samples);
        for (int64_t i = 0; i < group->bytes / ITEM; i++)
            links->wrong |= samples[i] != (int32_t)(links->received + i);
        links->received += group->bytes / ITEM;
        free(samples);
        xs_group_drop(links->in, group);
        if (links->stopped && links->received > links->blocks * BLOCK / 2) stop(links);
    }
    return NULL;
}

static xs_plan *plan_of(xs_manager *manager, xs_feed *feed, int64_t window, xs_drain *drain)
{
    const xs_shape one = {1, 1};
    xs_plan *plan = xs_plan_new(manager);
    xs_op *source = xs_op_feed_source(plan, feed, XS_AS_FIELDS, window, 1);
    xs_plan_shape_in(source, 0, &one);
    xs_plan_shape_out(source, 1, &one);
    xs_feed_source_begin(source, 0);
    xs_op *sink = xs_op_drain_sink(plan, drain);
    xs_plan_shape_in(sink, 1, &one);
    xs_plan_shape_out(sink, 0, NULL);
    xs_plan_connect(source, 0, sink, 0);
    xs_plan_prepare(plan, XS_DF, 64, 0);
    return plan;
}

static bool links_work(int64_t blocks, bool datagrams, bool stopped)
{
    xs_links links = {.manager = xs_manager_new(XS_REFCOUNT_LAZY, INT64_MAX), .blocks = blocks,
                      .stopped = stopped};
    const xs_record_field field = {.bytes = ITEM, .kind = XS_PLAIN};
    const xs_record record = {.bytes = ITEM, .fields = 1, .samples = 1, .field = &field};
    socketpair(AF_UNIX, datagrams ? SOCK_DGRAM : SOCK_STREAM, 0, links.socket);
    links.feed = xs_feed_new(1, 4);
    links.out = xs_drain_new(1, 1, 4);
    links.in = xs_drain_new(1, 1, 4);
    xs_drain_prompt(links.out);
    links.sender = xs_sender_new(links.out, &record, (xs_sender_options){
        .framed = !datagrams, .max_frame_bytes = 4096, .datagrams = datagrams, .sequence = datagrams});
    links.intake = datagrams
        ? xs_datagrams_new(links.manager, &record, (xs_datagram_options){
              .header_bytes = 16, .sequence_bytes = 8, .sample_offset = 8, .sample_bytes = 8,
              .max_bytes = 65507, .window = WINDOW, .reorder = 4, .ends = 1})
        : xs_stream_new(links.manager, &record, (xs_stream_options){
              .framed = 1, .max_frame_bytes = 4096, .window = WINDOW});
    xs_feed *received = xs_feed_new(1, 1);
    xs_feed_receive(received, links.intake);
    links.sending = plan_of(links.manager, links.feed, BLOCK / 3, links.out);
    links.receiving = plan_of(links.manager, received, WINDOW, links.in);

    pthread_t reader, sending, sender, link, receiving, writer, counters;
    pthread_create(&reader, NULL, read_blocks, &links);
    pthread_create(&sending, NULL, run_plan, links.sending);
    pthread_create(&sender, NULL, send_groups, &links);
    pthread_create(&link, NULL, keep_link, &links);
    pthread_create(&receiving, NULL, run_plan, links.receiving);
    pthread_create(&writer, NULL, check_samples, &links);
    pthread_create(&counters, NULL, read_counters, &links);
    pthread_join(reader, NULL);
    pthread_join(sending, NULL);
    xs_drain_close(links.out);
    pthread_join(sender, NULL);
    pthread_join(receiving, NULL);
    xs_drain_close(links.in);
    pthread_join(writer, NULL);
    atomic_store(&links.over, true);
    pthread_join(link, NULL);
    pthread_join(counters, NULL);

    xs_plan_free(links.sending);
    xs_plan_free(links.receiving);
    xs_sender_drop(links.sender);
    xs_feed_drop(links.feed);
    xs_feed_drop(received);
    xs_drain_drop(links.out);
    xs_drain_drop(links.in);
    close(links.socket[0]);
    close(links.socket[1]);
    xs_counters left;
    xs_manager_counters(links.manager, &left);
    xs_manager_drop(links.manager);
    bool all = links.received == blocks * BLOCK;
    bool right = !links.wrong && !left.live_blocks && !left.live_segments && (all || stopped);
    if (!right)
        fprintf(stderr, "wrong: %lld samples of %lld, %lld blocks are alive%s\n",
                (long long)links.received, (long long)(blocks * BLOCK), (long long)left.live_blocks,
                links.wrong ? ", out of order" : "");
    return right;
}

int main(int argc, char **argv)
{
    int64_t blocks = argc > 1 ? atol(argv[1]) : 2000;
    for (int i = 0; i < 4; i++)
        if (!links_work(blocks, i & 1, i & 2)) return 1;
    return 0;
}
