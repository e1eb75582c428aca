/* Images of plans: taking and writing them. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "saving.h"

enum {
    REFER_MIN = 1 << 16,  /* bytes from which an array is referred to instead of copied */
    WRITE_MAX = 1 << 22,  /* bytes in one call of write, and between two steps of the checksum */
    BEGUN = 12,           /* first length of the index of segments, as a power of two */
};

/* Memory outside of the image: its place among the image's own bytes. */
typedef struct {
    int64_t at;
    const char *bytes;
    int64_t count;
} xs_outside;

struct xs_image {
    char *own;
    int64_t length, room;
    xs_outside *outside;
    int64_t outsides, outside_room, outside_bytes;
    xs_seg **seen; /* segments saved so far, by hash; and their numbers */
    int64_t *number, segments, seen_room;
    bool failed; /* no memory */
};

xs_image *xs_image_new(void) { return calloc(1, sizeof(xs_image)); }

void xs_image_drop(xs_image *image)
{
    free(image->own);
    free(image->outside);
    free(image->seen);
    free(image->number);
    free(image);
}

int64_t xs_image_length(const xs_image *image) { return image->length + image->outside_bytes; }

/* -- taking -------------------------------------------------------------------------------- */

static void *room_for(xs_image *image, int64_t bytes)
{
    if (image->failed) return NULL;
    if (image->length + bytes > image->room) {
        int64_t room = 2 * image->room + bytes + 4096;
        char *own = realloc(image->own, (size_t)room);
        if (!own) {
            image->failed = true;
            return NULL;
        }
        image->own = own;
        image->room = room;
    }
    void *at = image->own + image->length;
    image->length += bytes;
    return at;
}

static int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

void save_nothing(xs_op *op, xs_image *image) {}

void save_words(xs_image *image, const void *words, int64_t count)
{
    void *at = room_for(image, 8 * count);
    if (at && count) memcpy(at, words, (size_t)(8 * count));
}

void save_int(xs_image *image, int64_t value) { save_words(image, &value, 1); }

static void refer(xs_image *image, const void *bytes, int64_t count)
{
    if (image->outsides == image->outside_room) {
        int64_t room = 2 * image->outside_room + 64;
        xs_outside *outside = realloc(image->outside, (size_t)room * sizeof *outside);
        if (!outside) {
            image->failed = true;
            return;
        }
        image->outside = outside;
        image->outside_room = room;
    }
    image->outside[image->outsides++] = (xs_outside){image->length, bytes, count};
    image->outside_bytes += count;
}

void save_bytes(xs_image *image, const void *bytes, int64_t count)
{
    int64_t whole = count / 8 * 8;
    if (count >= REFER_MIN) {
        refer(image, bytes, whole);
        bytes = (const char *)bytes + whole;
        count -= whole;
    }
    char *at = room_for(image, padded(count));
    if (!at || !count) return;
    memset(at + padded(count) - 8, 0, 8);
    memcpy(at, bytes, (size_t)count);
}

static int64_t slot_of(const xs_image *image, const xs_seg *seg)
{
    uint64_t hash = (uint64_t)(uintptr_t)seg * 0x9E3779B97F4A7C15ull;
    int64_t mask = image->seen_room - 1, at = (int64_t)(hash >> 32) & mask;
    while (image->seen[at] && image->seen[at] != seg) at = (at + 1) & mask;
    return at;
}

static bool index_grown(xs_image *image)
{
    if (2 * (image->segments + 1) <= image->seen_room) return true;
    xs_image old = *image;
    image->seen_room = old.seen_room ? 2 * old.seen_room : (int64_t)1 << BEGUN;
    image->seen = calloc((size_t)image->seen_room, sizeof *image->seen);
    image->number = calloc((size_t)image->seen_room, sizeof *image->number);
    if (!image->seen || !image->number) {
        free(image->seen);
        free(image->number);
        *image = old;
        image->failed = true;
        return false;
    }
    for (int64_t i = 0; i < old.seen_room; i++) {
        if (!old.seen[i]) continue;
        int64_t at = slot_of(image, old.seen[i]);
        image->seen[at] = old.seen[i];
        image->number[at] = old.number[i];
    }
    free(old.seen);
    free(old.number);
    return true;
}

static void save_samples(xs_image *image, xs_seg *seg)
{
    int64_t bytes = seg_bytes(seg);
    if (bytes >= REFER_MIN && seg->block) {
        save_bytes(image, seg->block->data + seg->offset, bytes);
        return;
    }
    char *at = room_for(image, padded(bytes));
    if (!at || !bytes) return;
    memset(at + padded(bytes) - 8, 0, 8);
    xs_seg_read(seg, seg->start, seg->width, at);
}

/* The number of the segment; a new one is followed by its range and samples. -1: none. */
void save_segment(xs_image *image, xs_seg *seg)
{
    if (!seg) {
        save_int(image, -1);
        return;
    }
    if (!index_grown(image)) return;
    int64_t at = slot_of(image, seg);
    if (image->seen[at]) {
        save_int(image, image->number[at]);
        return;
    }
    image->seen[at] = seg;
    image->number[at] = image->segments;
    save_int(image, image->segments++);
    save_int(image, seg->start);
    save_int(image, seg->width);
    save_int(image, seg->itemsize);
    save_samples(image, seg);
}

void save_tuple(xs_image *image, const xs_slot *tuple, const xs_shape *shape)
{
    for (int32_t i = 0; i < shape->fields; i++)
        if (shape->segments >> i & 1) save_segment(image, tuple[i].seg);
        else save_int(image, tuple[i].i);
}

/* -- plans --------------------------------------------------------------------------------- */

int32_t xs_op_saves(const xs_op *op) { return op->table->save != NULL; }

int32_t xs_op_number(const xs_op *op) { return op->id; }

void xs_ops_counters(xs_op **ops, int32_t count, int64_t *out)
{
    for (int32_t i = 0; i < count; i++) {
        xs_op_stats stats;
        xs_op_stats_read(ops[i], &stats);
        *out++ = stats.tuples;
        *out++ = stats.samples;
        *out++ = stats.emitted;
        *out++ = stats.busy_ns;
        *out++ = stats.dropped;
    }
}

int32_t xs_plan_saves(const xs_plan *plan) { return !plan->sources_ended && !plan->failed_op; }

static void save_queue(xs_image *image, const xs_queue *queue)
{
    const xs_shape *shape = &queue->op->in_shape[queue->port];
    save_int(image, queue->length);
    for (int64_t i = 0; i < queue->length; i++) {
        int64_t at = (queue->head + i) & (queue->capacity - 1);
        save_tuple(image, queue->ring + at * shape->fields, shape);
    }
}

/* The operator's number, the length of what follows, whether its source has ended, its queues, its
 * state. */
static void save_op(xs_image *image, xs_op *op)
{
    save_int(image, op->id);
    int64_t length_at = image->length, before;
    save_int(image, 0);
    before = xs_image_length(image);
    save_int(image, op->ended);
    save_int(image, op->ins);
    for (int32_t port = 0; port < op->ins; port++) save_queue(image, &op->in[port]);
    if (op->table->save) op->table->save(op, image);
    int64_t length = xs_image_length(image) - before;
    if (!image->failed) memcpy(image->own + length_at, &length, sizeof length);
}

/* The operators or queues with waiting tuples, in the order in which they are served. */
static void save_ready(xs_image *image, const xs_plan *plan)
{
    int64_t count = 0;
    for (const xs_op *op = plan->ready_op_head; op; op = op->next_ready) count++;
    for (const xs_queue *queue = plan->ready_queue_head; queue; queue = queue->next_ready) count++;
    save_int(image, count);
    for (const xs_op *op = plan->ready_op_head; op; op = op->next_ready) {
        save_int(image, op->id);
        save_int(image, 0);
    }
    for (const xs_queue *queue = plan->ready_queue_head; queue; queue = queue->next_ready) {
        save_int(image, queue->op->id);
        save_int(image, queue->port);
    }
}

int32_t xs_plan_save(xs_plan *plan, xs_image *image)
{
    const int64_t burst[] = {plan->admitting, plan->cut_short, plan->admit_source, plan->admit_overall,
                             plan->admitted, plan->spilled};
    save_words(image, burst, sizeof burst / sizeof *burst);
    int32_t ops = plan->ops; /* without clones for threads, which follow and have no state */
    while (ops && plan->op[ops - 1]->original) ops--;
    save_int(image, ops);
    for (int32_t i = 0; i < ops; i++) save_op(image, plan->op[i]);
    save_ready(image, plan);
    return image->failed ? XS_FAILED : XS_OK;
}

/* -- writing ------------------------------------------------------------------------------- */

typedef struct {
    int32_t file;
    uint32_t crc;
    int32_t error;
} xs_output_file;

static void put(xs_output_file *out, const char *bytes, int64_t count)
{
    while (count && !out->error) {
        int64_t part = count < WRITE_MAX ? count : WRITE_MAX;
        out->crc = xs_crc32c(out->crc, bytes, part);
        count -= part;
        while (part) {
            ssize_t written = write(out->file, bytes, (size_t)part);
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) {
                out->error = written ? errno : EIO;
                return;
            }
            bytes += written;
            part -= written;
        }
    }
}

int32_t xs_image_write(const xs_image *image, const xs_around *around, int32_t file)
{
    xs_output_file out = {.file = file};
    put(&out, around->front, around->front_bytes);
    int64_t at = 0;
    for (int64_t i = 0; i < image->outsides; i++) {
        const xs_outside *outside = &image->outside[i];
        put(&out, image->own + at, outside->at - at);
        put(&out, outside->bytes, outside->count);
        at = outside->at;
    }
    put(&out, image->own + at, image->length - at);
    put(&out, around->back, around->back_bytes);
    uint32_t crc = out.crc;
    put(&out, (const char *)&crc, sizeof crc);
    if (!out.error && fsync(file)) out.error = errno;
    return out.error;
}

/* Keeps only the file: locks and pipes of the parent end with the parent. */
static void close_others(int32_t file)
{
#ifdef SYS_close_range
    if ((!file || !syscall(SYS_close_range, 0u, (unsigned)file - 1, 0u)) &&
        !syscall(SYS_close_range, (unsigned)file + 1, ~0u, 0u))
        return;
#endif
    for (int32_t other = 0; other < 4096; other++)
        if (other != file) close(other);
}

int64_t xs_image_write_in_child(const xs_image *image, const xs_around *around, int32_t file)
{
#ifdef __linux__
    pid_t parent = getpid();
    /* The child allocates nothing and takes no lock, so no handler has to run before it starts. */
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(ECHILD);
    signal(SIGINT, SIG_IGN); /* Ctrl-C goes to all processes of a terminal */
    close_others(file);
    int32_t error = xs_image_write(image, around, file);
    _exit(error < 256 ? error : EIO);
#else
    return -1;
#endif
}

int32_t xs_image_written(int64_t child, int32_t wait)
{
    int status = 0;
    pid_t ended;
    do ended = waitpid((pid_t)child, &status, wait ? 0 : WNOHANG);
    while (ended < 0 && errno == EINTR);
    if (!ended) return -1;
    if (ended < 0) return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}
