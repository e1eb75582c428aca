/* Drains: tuples of a stream, collected in groups that a writer in another thread takes. */
#include "../engine/saving.h"
#include "io.h"
#include "monitor.h"

enum {
    GROUP_TUPLES = 8192,
    GROUP_BYTES = 1 << 20,
    LOOK_NS = 20000000, /* while waiting for the writer */
};
static const int64_t GRACE_NS = 1000000000; /* for a peer, after a stop */

/* Defined by the extension module; the body is in xstream/io/sink.py. Lets Python look for Ctrl-C and for
 * a stop of the run, while the engine waits here. Not 0: do not wait any longer. */
int32_t xs_io_look_up(int64_t token);

struct xs_drain {
    xs_monitor monitor;
    xs_shape shape;
    int64_t capacity, head, length;
    xs_group *filling;
    int64_t filling_since_ns;
    bool closed, failed;
    bool prompt, abandoned; /* tuples do not wait for others; they are dropped */
    int64_t token, stopped_ns;
    _Atomic int64_t refs;
    xs_group *ring[]; /* groups that are full */
};

xs_drain *xs_drain_new(int32_t fields, uint64_t segments, int64_t capacity)
{
    xs_drain *drain = calloc(1, sizeof *drain + (size_t)capacity * sizeof *drain->ring);
    if (!drain) return NULL;
    monitor_init(&drain->monitor);
    drain->shape = (xs_shape){fields, segments};
    drain->capacity = capacity;
    atomic_init(&drain->refs, 1);
    return drain;
}

void xs_group_drop(xs_drain *drain, xs_group *group)
{
    if (!group) return;
    for (int64_t i = 0; drain->shape.segments && i < group->tuples; i++)
        tuple_drop(group->slots + i * drain->shape.fields, drain->shape.segments);
    free(group->slots);
    free(group);
}

void xs_drain_drop(xs_drain *drain)
{
    if (atomic_fetch_sub_explicit(&drain->refs, 1, memory_order_acq_rel) != 1) return;
    for (; drain->length; drain->length--, drain->head = (drain->head + 1) % drain->capacity)
        xs_group_drop(drain, drain->ring[drain->head]);
    xs_group_drop(drain, drain->filling);
    monitor_destroy(&drain->monitor);
    free(drain);
}

static xs_group *first_group(xs_drain *drain, int64_t patience_ns)
{
    if (drain->length) {
        xs_group *group = drain->ring[drain->head];
        drain->head = (drain->head + 1) % drain->capacity;
        if (drain->length-- == drain->capacity) monitor_tell(&drain->monitor);
        return group;
    }
    bool waited = drain->prompt || (drain->filling &&
                                    engine_now_ns() - drain->filling_since_ns >= patience_ns);
    if (!drain->filling || !(drain->closed || waited)) return NULL;
    xs_group *group = drain->filling;
    drain->filling = NULL;
    return group;
}

xs_group *xs_drain_take(xs_drain *drain, int64_t patience_ns)
{
    monitor_lock(&drain->monitor);
    xs_group *group = first_group(drain, patience_ns);
    if (!group && !drain->closed) {
        monitor_wait(&drain->monitor, patience_ns);
        group = first_group(drain, patience_ns);
    }
    monitor_unlock(&drain->monitor);
    return group;
}

void xs_drain_wake(xs_drain *drain)
{
    monitor_lock(&drain->monitor);
    monitor_tell(&drain->monitor);
    monitor_unlock(&drain->monitor);
}

int32_t xs_drain_ended(xs_drain *drain)
{
    monitor_lock(&drain->monitor);
    bool ended = drain->closed && !drain->length && !drain->filling;
    monitor_unlock(&drain->monitor);
    return ended;
}

static void mark(xs_drain *drain, bool failed)
{
    monitor_lock(&drain->monitor);
    drain->closed = true;
    drain->failed |= failed;
    monitor_tell(&drain->monitor);
    monitor_unlock(&drain->monitor);
}

void xs_drain_watch(xs_drain *drain, int64_t token) { drain->token = token; }
void xs_drain_prompt(xs_drain *drain) { drain->prompt = true; }

void xs_drain_abandon(xs_drain *drain)
{
    monitor_lock(&drain->monitor);
    drain->abandoned = true;
    monitor_tell(&drain->monitor);
    monitor_unlock(&drain->monitor);
}

void xs_drain_close(xs_drain *drain) { mark(drain, false); }
void xs_drain_fail(xs_drain *drain) { mark(drain, true); }

void xs_group_ranges(const xs_drain *drain, const xs_group *group, int32_t field, int64_t *starts,
                     int64_t *widths)
{
    for (int64_t i = 0; i < group->tuples; i++) {
        const xs_seg *seg = group->slots[i * drain->shape.fields + field].seg;
        starts[i] = seg->start;
        widths[i] = seg->width;
    }
}

void xs_group_gather(const xs_drain *drain, const xs_group *group, int32_t field, void *out)
{
    char *to = out;
    for (int64_t i = 0; i < group->tuples; i++) {
        xs_seg *seg = group->slots[i * drain->shape.fields + field].seg;
        xs_seg_read(seg, seg->start, seg->width, to);
        to += seg_bytes(seg);
    }
}

/* -- the sink ------------------------------------------------------------------------------ */

typedef struct {
    xs_op op;
    xs_drain *drain;
} xs_drain_sink;

/* Room for one more tuple in the group that is being filled. */
static bool has_room(xs_drain *drain)
{
    xs_group *group = drain->filling;
    if (!group) {
        group = drain->filling = calloc(1, sizeof *group);
        drain->filling_since_ns = engine_now_ns();
    }
    if (!group) return false;
    if (group->tuples < group->room) return true;
    int64_t room = group->room ? 2 * group->room : 16;
    size_t bytes = (size_t)(room * drain->shape.fields) * sizeof *group->slots;
    xs_slot *slots = realloc(group->slots, bytes);
    if (!slots) return false;
    group->slots = slots;
    group->room = room;
    return true;
}

static void add(xs_drain *drain, const xs_slot *tuple)
{
    xs_group *group = drain->filling;
    const xs_shape *shape = &drain->shape;
    memcpy(group->slots + group->tuples++ * shape->fields, tuple,
           (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        group->bytes += seg_bytes(xs_seg_ref(tuple[__builtin_ctzll(left)].seg));
}

/* Waits for the writer. After a stop a peer that takes nothing is given up. */
static void await_writer(xs_op *op, xs_drain *drain)
{
    while (drain->length == drain->capacity && !drain->failed && !drain->abandoned) {
        monitor_wait(&drain->monitor, LOOK_NS);
        if (!drain->token || drain->length < drain->capacity) continue;
        monitor_unlock(&drain->monitor);
        bool enough = xs_io_look_up(drain->token) != 0;
        monitor_lock(&drain->monitor);
        if (!drain->prompt || !(enough || atomic_load(&op->plan->stop))) continue;
        int64_t now = engine_now_ns();
        if (!drain->stopped_ns) drain->stopped_ns = now;
        if (enough || now - drain->stopped_ns > GRACE_NS) drain->abandoned = true;
    }
}

static int32_t sink_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_drain *drain = ((xs_drain_sink *)op)->drain;
    int32_t status = XS_OK;
    monitor_lock(&drain->monitor);
    await_writer(op, drain);
    if (drain->abandoned && !drain->failed) {
        counter_add(&op->dropped, 1);
        monitor_unlock(&drain->monitor);
        return XS_OK;
    }
    if (drain->failed) status = op_fail(op, "the writer failed");
    else if (!has_room(drain)) status = op_out_of_memory(op);
    else add(drain, tuple);
    xs_group *group = drain->filling;
    if (!status && drain->prompt && group->tuples == 1) monitor_tell(&drain->monitor);
    if (!status && (group->tuples >= GROUP_TUPLES || group->bytes >= GROUP_BYTES)) {
        drain->ring[(drain->head + drain->length) % drain->capacity] = group;
        drain->filling = NULL;
        if (!drain->length++) monitor_tell(&drain->monitor);
    }
    monitor_unlock(&drain->monitor);
    return status;
}

static int32_t sink_finish(xs_op *op)
{
    xs_drain_close(((xs_drain_sink *)op)->drain);
    return XS_OK;
}

static void sink_destroy(xs_op *op)
{
    xs_drain *drain = ((xs_drain_sink *)op)->drain;
    xs_drain_close(drain);
    xs_drain_drop(drain);
}

static const xs_op_table sink_table = {
    .process = sink_process, .finish = sink_finish, .destroy = sink_destroy,
    .save = save_nothing}; /* the writer's position covers all tuples */

xs_op *xs_op_drain_sink(xs_plan *plan, xs_drain *drain)
{
    xs_drain_sink *sink = op_new(plan, sizeof *sink, &sink_table);
    if (!sink) return NULL;
    atomic_fetch_add_explicit(&drain->refs, 1, memory_order_relaxed);
    sink->drain = drain;
    return &sink->op;
}
