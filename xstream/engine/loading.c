/* Loading images into plans. Nothing in an image is trusted: counts are limited by the bytes that are
 * left, numbers of operators, ports and segments by what there is. */
#include "saving.h"

struct xs_stored {
    xs_op *op; /* being loaded */
    const char *at, *end;
    const int64_t *const *itemsize; /* by number of operator */
    xs_seg **seg;                   /* segments loaded so far, with a count each */
    int64_t segs, seg_room;
    const char *wrong;
};

bool load_refused(xs_stored *stored, const char *why)
{
    if (!stored->wrong) stored->wrong = why;
    return false;
}

const void *load_bytes(xs_stored *stored, int64_t count)
{
    if (count < 0 || count > stored->end - stored->at ||
        (count + 7) / 8 * 8 > stored->end - stored->at) {
        load_refused(stored, "it ends too early");
        return NULL;
    }
    const void *found = stored->at;
    stored->at += (count + 7) / 8 * 8;
    return found;
}

bool load_words(xs_stored *stored, void *out, int64_t count)
{
    if (count < 0 || count > (stored->end - stored->at) / 8)
        return load_refused(stored, "it ends too early");
    const void *from = load_bytes(stored, 8 * count);
    if (from && count) memcpy(out, from, (size_t)(8 * count));
    return from != NULL;
}

bool load_int(xs_stored *stored, int64_t *out) { return load_words(stored, out, 1); }

bool load_range(xs_stored *stored, int64_t *out, int64_t low, int64_t high)
{
    if (!load_int(stored, out)) return false;
    return (*out >= low && *out <= high) || load_refused(stored, "a number is out of range");
}

bool load_flag(xs_stored *stored, bool *out)
{
    int64_t value;
    if (!load_range(stored, &value, 0, 1)) return false;
    *out = value;
    return true;
}

bool load_count(xs_stored *stored, int64_t bytes, int64_t *out)
{
    if (!load_int(stored, out)) return false;
    int64_t most = (stored->end - stored->at) / (bytes < 8 ? 8 : bytes);
    return (*out >= 0 && *out <= most) || load_refused(stored, "it ends too early");
}

/* -- segments ------------------------------------------------------------------------------ */

static bool known(xs_stored *stored, xs_seg *seg)
{
    if (stored->segs == stored->seg_room) {
        int64_t room = 2 * stored->seg_room + 64;
        xs_seg **larger = realloc(stored->seg, (size_t)room * sizeof *larger);
        if (!larger) return load_refused(stored, "no memory is left");
        stored->seg = larger;
        stored->seg_room = room;
    }
    stored->seg[stored->segs++] = xs_seg_ref(seg);
    return true;
}

static bool load_new_segment(xs_stored *stored, int64_t itemsize, xs_seg **out)
{
    int64_t start, width, size;
    if (!load_int(stored, &start) || !load_int(stored, &width) || !load_int(stored, &size)) return false;
    if (size != itemsize) return load_refused(stored, "samples have another size");
    if (!indices_fit(start, width) || width > (stored->end - stored->at) / size)
        return load_refused(stored, "a segment is out of range");
    const void *samples = load_bytes(stored, width * size);
    if (!samples) return false;
    xs_seg *seg = xs_seg_new(stored->op->plan->manager, start, width, size);
    if (!seg) return load_refused(stored, "no memory is left");
    if (width) memcpy(xs_seg_own_data(seg), samples, (size_t)(width * size));
    *out = seg;
    if (known(stored, seg)) return true;
    xs_seg_drop(seg);
    return false;
}

bool load_any_segment(xs_stored *stored, int64_t itemsize, xs_seg **out)
{
    int64_t number;
    *out = NULL;
    if (itemsize < 1) return load_refused(stored, "a field has no samples");
    if (!load_range(stored, &number, -1, stored->segs)) return false;
    if (number < 0) return true;
    if (number == stored->segs) return load_new_segment(stored, itemsize, out);
    if (stored->seg[number]->itemsize != itemsize)
        return load_refused(stored, "samples have another size");
    *out = xs_seg_ref(stored->seg[number]);
    return true;
}

static const xs_shape *shape_of(const xs_op *op, int32_t port)
{
    return op->ins ? &op->in_shape[port] : &op->out[port].shape;
}

int64_t load_itemsize(const xs_stored *stored, int32_t port, int32_t field)
{
    const int64_t *itemsize = stored->itemsize[stored->op->id];
    for (int32_t before = 0; before < port && itemsize; before++)
        itemsize += shape_of(stored->op, before)->fields;
    return itemsize ? itemsize[field] : 0;
}

bool load_segment(xs_stored *stored, int32_t port, int32_t field, xs_seg **out)
{
    return load_any_segment(stored, load_itemsize(stored, port, field), out);
}

bool load_tuple(xs_stored *stored, int32_t port, xs_slot *out)
{
    const xs_shape *shape = shape_of(stored->op, port);
    uint64_t held = 0;
    for (int32_t i = 0; i < shape->fields; i++) {
        bool segment = shape->segments >> i & 1;
        if (segment) held |= (uint64_t)1 << i;
        bool fits = segment ? load_segment(stored, port, i, &out[i].seg) : load_int(stored, &out[i].i);
        if (fits && segment && !out[i].seg) fits = load_refused(stored, "a segment is missing");
        if (fits) continue;
        tuple_drop(out, held);
        return false;
    }
    return true;
}

/* -- plans --------------------------------------------------------------------------------- */

static bool load_queue(xs_stored *stored, int32_t port)
{
    xs_slot tuple[MAX_FIELDS];
    int64_t length;
    if (!load_count(stored, 8, &length)) return false;
    for (int64_t i = 0; i < length; i++) {
        if (!load_tuple(stored, port, tuple)) return false;
        if (!queue_restore(&stored->op->in[port], tuple))
            return load_refused(stored, "no memory is left");
    }
    return true;
}

/* A compiled region, which the other plan may not have, is only a queue: it must be empty. */
static bool skip_region(xs_stored *stored)
{
    int64_t word;
    for (int64_t i = 0; stored->at < stored->end; i++) {
        if (!load_int(stored, &word)) return false;
        if (word && i != 1) return load_refused(stored, "tuples wait for operators that were compiled together");
    }
    return true;
}

static bool load_state(xs_stored *stored, xs_op *op)
{
    int64_t ports;
    if (!load_flag(stored, &op->ended) || !load_range(stored, &ports, op->ins, op->ins)) return false;
    for (int32_t port = 0; port < op->ins; port++)
        if (!load_queue(stored, port)) return false;
    if (op->table->load && !op->table->load(op, stored)) return load_refused(stored, "it does not fit");
    return stored->at == stored->end || load_refused(stored, "it is too long");
}

static bool load_op(xs_stored *stored, xs_plan *plan, int64_t expected)
{
    int64_t number, length;
    const char *end = stored->end;
    stored->op = expected < plan->ops ? plan->op[expected] : NULL;
    if (!load_range(stored, &number, expected, expected) || !load_int(stored, &length)) return false;
    if (length < 0 || length % 8 || length > end - stored->at)
        return load_refused(stored, "it ends too early");
    stored->end = stored->at + length;
    if (!(stored->op ? load_state(stored, stored->op) : skip_region(stored))) return false;
    stored->end = end;
    return true;
}

static bool load_ready(xs_stored *stored, xs_plan *plan)
{
    int64_t count, number, port;
    if (!load_count(stored, 16, &count)) return false;
    for (int64_t i = 0; i < count; i++) {
        if (!load_range(stored, &number, 0, plan->ops - 1) || !load_int(stored, &port)) return false;
        xs_op *op = plan->op[number];
        if (port < 0 || port >= op->ins) return load_refused(stored, "a port is out of range");
        if (op->in[port].length) queue_mark_ready(&op->in[port]);
        for (int32_t other = 0; plan->scheduler->by_operator && other < op->ins; other++)
            if (op->in[other].length) queue_mark_ready(&op->in[other]);
    }
    for (int32_t i = 0; i < plan->ops; i++) /* if the other plan served operators, not queues */
        for (int32_t other = 0; other < plan->op[i]->ins; other++)
            if (plan->op[i]->in[other].length) queue_mark_ready(&plan->op[i]->in[other]);
    return true;
}

static bool load_plan(xs_stored *stored, xs_plan *plan)
{
    bool admitting, cut_short, spilled;
    int64_t source, overall, admitted, records;
    int64_t most = plan->tuple_burst ? plan->tuple_burst : INT64_MAX;
    if (!load_flag(stored, &admitting) || !load_flag(stored, &cut_short) ||
        !load_range(stored, &source, 0, plan->sources) || !load_range(stored, &overall, XS_OK, XS_WAIT) ||
        !load_range(stored, &admitted, 0, most) || !load_flag(stored, &spilled) ||
        !load_count(stored, 16, &records))
        return false;
    for (int64_t i = 0; i < records; i++)
        if (!load_op(stored, plan, i)) return false;
    stored->op = NULL;
    if (!load_ready(stored, plan)) return false;
    if (stored->at != stored->end) return load_refused(stored, "it is too long");
    plan->admitting = admitting;
    plan->cut_short = cut_short;
    plan->admit_source = (int32_t)source;
    plan->admit_overall = (int32_t)overall;
    plan->admitted = admitted;
    plan->spilled = spilled;
    plan_set_timing(plan, plan->profiled, 1);
    return true;
}

const char *xs_plan_load(xs_plan *plan, const void *bytes, int64_t count, const xs_sizes *sizes,
                         int32_t ops, int32_t *failed_op)
{
    const int64_t **itemsize = calloc((size_t)plan->ops + 1, sizeof *itemsize);
    if (!itemsize) return "no memory is left";
    for (int32_t i = 0; i < ops; i++) itemsize[sizes[i].op->id] = sizes[i].itemsize;
    xs_stored stored = {.at = bytes, .end = (const char *)bytes + count, .itemsize = itemsize};
    bool loaded = load_plan(&stored, plan);
    *failed_op = loaded || !stored.op ? -1 : stored.op->id;
    for (int64_t i = 0; i < stored.segs; i++) xs_seg_drop(stored.seg[i]);
    free(stored.seg);
    free(itemsize);
    return loaded ? NULL : stored.wrong;
}
