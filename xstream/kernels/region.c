/* Regions: the core fills a frame once, calls a function that runs a whole chain of kernels, and emits
 * the results of the last one. xstream/kernels/_region.py generates that function. */
#include "internal.h"

enum { SEGMENT_WORDS = 3 }; /* address, width, start */

typedef struct {
    xs_op *op;
    int64_t *frame; /* NULL: not a kernel */
    bool at_end, stateful;
    int64_t itemsize[MAX_FIELDS];
} xs_member;

typedef struct {
    int64_t itemsize; /* 0: a scalar */
    int32_t origin;   /* the input field that is passed through, or -1 */
    xs_seg *seg;      /* allocated but not sent yet */
    xs_seg *aside;    /* the one before, for reuse; or NULL */
} xs_region_out;

typedef struct {
    xs_op op;
    void (*call)(int64_t *frame);
    int64_t *frame;
    int32_t words, outputs, outputs_at, members, members_at;
    uint64_t used, walked; /* input fields that are read as arrays; others that are only walked */
    xs_pieces pieces;
    const xs_slot *input; /* the tuple that is being processed */
    const void *data; /* the samples of its last field that is read */
    bool passes; /* some output is a segment of the input */
    bool stateful; /* some member keeps state */
    bool maps_windows; /* the only output is a new window */
    const char *behind; /* of the input before: the address of its end */
    uint16_t in_a_row;
    xs_slot *made;    /* results of a batch that wait to be emitted together; made for the first one */
    int32_t waiting;  /* how many of them */
    bool batch;       /* is being processed */
    xs_seg *failing[MAX_FIELDS]; /* copies of the arrays that a member failed on */
    xs_member *member;
    xs_region_out out[MAX_FIELDS];
} xs_region;

static xs_region *region_of(const int64_t *frame) { return (xs_region *)frame[XS_FRAME_SELF]; }

/* The member to report a failure for. It may belong to another part of a divided plan, but the failure
 * is reported in the part in which the region runs. */
static xs_member *member_of(xs_region *region, int64_t stage)
{
    xs_member *member = &region->member[stage];
    member->op->plan = region->op.plan;
    return member;
}

static void failed(xs_region *region, xs_region_status status, int64_t stage)
{
    if (region->frame[XS_REGION_STATUS]) return;
    region->frame[XS_REGION_STATUS] = status;
    region->frame[XS_REGION_STAGE] = stage;
}

/* -- functions that compiled code calls ---------------------------------------------------- */

static void *region_allocate(int64_t *frame, int64_t field, int64_t width, int64_t start)
{
    xs_region *region = region_of(frame);
    xs_region_out *out = &region->out[field];
    if (out->seg) xs_seg_drop(out->seg);
    xs_seg *aside = out->aside;
    out->aside = NULL;
    if (aside && !seg_take_up(aside, region->op.plan->manager, start, width, region->data)) {
        seg_free_aside(aside);
        aside = NULL;
    }
    out->seg = aside ? aside : xs_seg_new_beside(region->op.plan->manager, start, width, out->itemsize,
                                                 region->data);
    if (out->seg) return xs_seg_own_data(out->seg);
    op_out_of_memory(member_of(region, region->members - 1)->op);
    failed(region, XS_REGION_UNFIT, region->members - 1);
    return NULL;
}

static int32_t emit_waiting(xs_region *region)
{
    int32_t count = region->waiting;
    region->waiting = 0;
    return count ? emit_many(&region->op, region->made, count) : XS_OK;
}

/* A result without segments is emitted later, together with others. */
static int64_t send_later(xs_region *region, const int64_t *word)
{
    int32_t status = region->waiting == MANY ? emit_waiting(region) : XS_OK;
    if (unlikely(status)) failed(region, XS_REGION_PASSED_ON, 0);
    xs_slot *row = region->made + region->waiting++ * region->outputs;
    for (int32_t field = 0; field < region->outputs; field++) row[field].i = word[field];
    return status;
}

static int64_t region_send(int64_t *frame)
{
    xs_region *region = region_of(frame);
    const int64_t *word = frame + region->outputs_at;
    if (region->batch) return send_later(region, word);
    xs_slot tuple[MAX_FIELDS];
    uint64_t own = 0;
    for (int32_t field = 0; field < region->outputs; field++) {
        xs_region_out *out = &region->out[field];
        if (out->origin >= 0) {
            tuple[field] = region->input[out->origin];
        } else if (out->itemsize) {
            tuple[field].seg = out->seg;
            out->seg = NULL;
            own |= (uint64_t)1 << field;
        } else {
            tuple[field].i = word[field];
        }
    }
    int32_t status = emit_giving(&region->op, 0, tuple, region->passes ? NULL : tuple);
    for (; own; own &= own - 1) {
        int field = __builtin_ctzll(own);
        xs_seg *seg = tuple[field].seg;
        if (unlikely(!seg)) continue; /* taken by a successor */
        if (!region->out[field].aside && seg_set_aside(seg)) region->out[field].aside = seg;
        else xs_seg_drop(seg);
    }
    if (unlikely(status)) failed(region, XS_REGION_PASSED_ON, 0);
    return status;
}

static void region_outside(int64_t *frame, int64_t stage, int64_t start, int64_t width)
{
    xs_region *region = region_of(frame);
    if (frame[XS_REGION_STATUS]) return;
    op_outside(member_of(region, stage)->op, start, width);
    failed(region, XS_REGION_UNFIT, stage);
}

/* Copies an array between two members if the second one failed on it. It is copied during the call,
 * because the array is freed when the function returns, and so is a replaced state array. The copy
 * does not count towards the manager's limit, because reaching that limit may be the failure. */
static void region_keep(int64_t *frame, int64_t stage, int64_t field, const void *samples,
                        int64_t width, int64_t start)
{
    xs_region *region = region_of(frame);
    int64_t itemsize = region->member[stage].itemsize[field];
    size_t bytes = (size_t)(width * itemsize);
    void *copy = malloc(bytes + 1);
    if (!copy || region->failing[field]) {
        free(copy);
        return;
    }
    if (width) memcpy(copy, samples, bytes);
    region->failing[field] =
        xs_seg_foreign(region->op.plan->manager, start, width, itemsize, copy, 0, free, copy);
}

/* -- failures ------------------------------------------------------------------------------ */

/* Rebuilds the tuple that a member failed on; false if memory ran out. */
static bool failed_tuple(xs_region *region, const xs_member *member, xs_slot *tuple)
{
    if (!member->frame) return false; /* not a kernel: it can only fail for lack of memory */
    const xs_shape *shape = &member->op->in_shape[0];
    const int64_t *word = member->frame + XS_FRAME_INPUTS;
    for (int32_t field = 0; field < shape->fields; field++) {
        if (!(shape->segments >> field & 1)) {
            tuple[field].i = *word++;
            continue;
        }
        int64_t width = word[1];
        word += SEGMENT_WORDS;
        if (width < 0) { /* an input field of the region, by number */
            tuple[field].seg = xs_seg_ref(region->input[-1 - width].seg);
            continue;
        }
        tuple[field].seg = region->failing[field];
        region->failing[field] = NULL;
        if (tuple[field].seg) continue;
        tuple_drop(tuple, shape->segments & (((uint64_t)1 << field) - 1));
        return false;
    }
    return true;
}

static int32_t describe_failure(xs_region *region)
{
    int64_t *frame = region->frame;
    for (int32_t field = 0; field < region->outputs; field++) {
        if (region->out[field].seg) xs_seg_drop(region->out[field].seg);
        region->out[field].seg = NULL;
    }
    if (frame[XS_FRAME_RAISED] && !frame[XS_REGION_STATUS])
        return op_out_of_memory(&region->op); /* only kernels raise */
    if (frame[XS_REGION_STATUS] == XS_REGION_PASSED_ON) return XS_FAILED;
    xs_member *member = member_of(region, frame[XS_REGION_STAGE]);
    xs_plan *plan = region->op.plan;
    bool ended = frame[XS_REGION_ENDED] == frame[XS_REGION_STAGE] + 1;
    xs_slot tuple[MAX_FIELDS];
    if (ended || !failed_tuple(region, member, tuple)) {
        if (!ended && frame[XS_REGION_STATUS] != XS_REGION_RAISED)
            return op_out_of_memory(member->op); /* the message shows the region's input instead */
        plan->failed_op = member->op;
        plan->failed_port = -1;
        return op_fail(member->op, "the kernel raised an error");
    }
    op_fail(member->op, "the kernel raised an error");
    pass_failed(member->op, 0, tuple);
    tuple_drop(tuple, member->op->in_shape[0].segments);
    return XS_FAILED;
}

/* -- the operator -------------------------------------------------------------------------- */

static int32_t after_call(xs_region *region)
{
    const int64_t *frame = region->frame;
    for (int32_t i = 0; region->stateful && i < region->members; i++)
        if (region->member[i].stateful) kernel_free_outgrown(region->member[i].op);
    if (unlikely(frame[XS_REGION_STATUS] || frame[XS_FRAME_RAISED])) return describe_failure(region);
    return frame[XS_FRAME_VERDICT] ? XS_FORWARD : XS_OK;
}

static int32_t fill_inputs(xs_region *region, const xs_slot *tuple, xs_block **held, int32_t *holds)
{
    const xs_shape *shape = &region->op.in_shape[0];
    int64_t *word = region->frame + XS_REGION_INPUTS;
    if (region->walked && !pieces_reserve(&region->pieces, tuple, region->walked))
        return op_out_of_memory(&region->op);
    for (int32_t field = 0; field < shape->fields; field++) {
        if (!(shape->segments >> field & 1)) {
            *word++ = tuple[field].i;
            continue;
        }
        xs_seg *seg = tuple[field].seg;
        xs_block *hold = NULL;
        bool walked = region->walked >> field & 1, read = walked || region->used >> field & 1;
        const void *data = walked ? pieces_table(&region->pieces, seg) : NULL;
        if (data) region->frame[XS_FRAME_PIECES] |= (int64_t)1 << field;
        else data = read ? kernel_contiguous(seg, &hold) : seg;
        if (unlikely(!data)) return op_out_of_memory(&region->op);
        if (hold) held[(*holds)++] = hold;
        if (read) region->data = data;
        *word++ = (int64_t)data;
        *word++ = seg->width;
        *word++ = seg->start;
    }
    return XS_OK;
}

/* Tuples without segments are read in place. */
static int32_t region_process_many(xs_op *op, int32_t port, const xs_slot *rows, int64_t count)
{
    xs_region *region = (xs_region *)op;
    region->frame[XS_REGION_ROWS] = (int64_t)rows;
    region->frame[XS_REGION_COUNT] = count;
    region->frame[XS_FRAME_VERDICT] = 0;
    region->input = rows;
    if (count == 1) {
        region->call(region->frame);
        return after_call(region);
    }
    if (!region->made && !op->out[0].shape.segments)
        region->made = malloc(((size_t)region->outputs + 1) * MANY * sizeof *region->made);
    region->batch = region->made != NULL;
    region->call(region->frame);
    region->batch = false;
    int32_t passed = emit_waiting(region); /* before a failure on a later tuple is reported */
    int32_t status = after_call(region);
    return passed ? passed : status;
}

/* Fast path for one window in one block. */
static int32_t region_window(xs_region *region, const xs_slot *tuple)
{
    const xs_seg *seg = tuple->seg;
    int64_t *frame = region->frame;
    region->data = seg->block->data + seg->offset;
    frame[XS_REGION_INPUTS] = (int64_t)region->data;
    frame[XS_REGION_INPUTS + 1] = seg->width;
    frame[XS_REGION_INPUTS + 2] = seg->start;
    frame[XS_FRAME_VERDICT] = 0;
    region->input = tuple;
    region->call(frame);
    if (region->maps_windows)
        prefetch_behind(&region->behind, &region->in_a_row, region->data, seg_bytes(seg), false);
    return after_call(region);
}

static int32_t region_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    if (!op->in_shape[0].segments) return region_process_many(op, port, tuple, 1);
    xs_region *region = (xs_region *)op;
    if (is_window(&op->in_shape[0]) && likely(tuple->seg->block) &&
        tuple->seg->manager->kind != XS_REFCOUNT_REALLOC)
        return region_window(region, tuple);
    xs_block *held[MAX_FIELDS];
    int32_t holds = 0, status = fill_inputs(region, tuple, held, &holds);
    if (likely(!status)) {
        region->input = tuple;
        region->frame[XS_FRAME_VERDICT] = 0;
        region->call(region->frame);
        status = after_call(region);
    }
    region->frame[XS_FRAME_PIECES] = 0;
    while (holds) xs_block_unhold(held[--holds]);
    return status;
}

static void free_aside(xs_region *region)
{
    for (int32_t field = 0; field < region->outputs; field++) {
        if (region->out[field].aside) seg_free_aside(region->out[field].aside);
        region->out[field].aside = NULL;
    }
}

static int32_t region_finish(xs_op *op)
{
    xs_region *region = (xs_region *)op;
    free_aside(region);
    for (int32_t i = 0; i < region->members; i++) {
        if (!region->member[i].at_end) continue;
        region->frame[XS_REGION_ENDED] = i + 1;
        region->call(region->frame);
        int32_t status = after_call(region);
        if (status) return status;
    }
    return XS_OK;
}

static void region_destroy(xs_op *op)
{
    xs_region *region = (xs_region *)op;
    free_aside(region);
    for (int32_t field = 0; field < region->outputs; field++)
        if (region->out[field].seg) xs_seg_drop(region->out[field].seg);
    for (int32_t field = 0; field < MAX_FIELDS; field++)
        if (region->failing[field]) xs_seg_drop(region->failing[field]);
    pieces_free(&region->pieces);
    free(region->made);
    free(region->member);
    free(region->frame);
}

static bool region_stateless(const xs_op *op)
{
    const xs_region *region = (const xs_region *)op;
    bool stateless = true;
    for (int32_t i = 0; i < region->members && stateless; i++) {
        const xs_member *member = &region->member[i];
        stateless = !member->frame || (!member->at_end && member->op->table->stateless(member->op));
    }
    return stateless;
}

/* A member of a clone is a clone too, with a frame of its own. */
static bool clone_member(xs_region *clone, int32_t i, const xs_member *member)
{
    xs_member *own = &clone->member[i];
    *own = *member;
    if (!member->frame) return true;
    own->op = member->op->table->clone(member->op, clone->op.plan);
    if (!own->op || xs_plan_shape_in(own->op, member->op->ins, member->op->in_shape)) return false;
    own->op->original = member->op;
    own->frame = xs_kernel_frame(own->op);
    clone->frame[clone->members_at + i] = (int64_t)own->frame;
    return true;
}

static xs_op *region_clone(xs_op *op, xs_plan *plan)
{
    const xs_region *region = (xs_region *)op;
    xs_op *made = xs_op_region(plan, (int64_t)region->call, region->words, region->outputs_at,
                               region->members_at, region->members);
    if (!made) return NULL;
    xs_region *clone = (xs_region *)made;
    clone->outputs = region->outputs;
    clone->used = region->used;
    clone->walked = region->walked;
    clone->passes = region->passes;
    clone->stateful = region->stateful;
    clone->maps_windows = region->maps_windows;
    for (int32_t field = 0; field < region->outputs; field++) {
        clone->out[field] = region->out[field];
        clone->out[field].seg = clone->out[field].aside = NULL;
    }
    for (int32_t i = 0; i < region->members; i++)
        if (!clone_member(clone, i, &region->member[i])) return NULL;
    return made;
}

static const xs_op_table region_table = {
    .process = region_process, .process_many = region_process_many, .finish = region_finish,
    .destroy = region_destroy, .clone = region_clone, .stateless = region_stateless,
    .save = save_nothing}; /* its members have the state */

xs_op *xs_op_region(xs_plan *plan, int64_t call_address, int32_t words, int32_t outputs_at,
                    int32_t members_at, int32_t members)
{
    int64_t *frame = calloc((size_t)words + 1, sizeof *frame);
    xs_member *member = calloc((size_t)members, sizeof *member);
    xs_region *region = frame && member ? op_new(plan, sizeof *region, &region_table) : NULL;
    if (!region) {
        free(frame);
        free(member);
        return NULL;
    }
    region->call = (void (*)(int64_t *))call_address;
    region->frame = frame;
    region->words = words;
    region->member = member;
    region->members = members;
    region->members_at = members_at;
    region->outputs_at = outputs_at;
    frame[XS_FRAME_SELF] = (int64_t)region;
    frame[XS_FRAME_ALLOCATE] = (int64_t)region_allocate;
    frame[XS_FRAME_SEND] = (int64_t)region_send;
    frame[XS_REGION_OUTSIDE] = (int64_t)region_outside;
    frame[XS_REGION_KEEP] = (int64_t)region_keep;
    return &region->op;
}

void xs_region_member(xs_op *op, int32_t i, xs_op *member, int32_t fields, const int64_t *itemsizes)
{
    xs_region *region = (xs_region *)op;
    xs_member *one = &region->member[i];
    one->op = member;
    member->within = op;
    if (!fields) return;
    one->frame = xs_kernel_frame(member);
    one->stateful = kernel_states(member) > 0;
    region->stateful |= one->stateful;
    one->at_end = kernel_taken_over(member);
    for (int32_t field = 0; field < fields; field++) one->itemsize[field] = itemsizes[field];
    region->frame[region->members_at + i] = (int64_t)one->frame;
}

void xs_region_output(xs_op *op, int32_t field, int64_t itemsize, int32_t origin)
{
    xs_region *region = (xs_region *)op;
    region->out[field] = (xs_region_out){.itemsize = itemsize, .origin = origin};
    if (field >= region->outputs) region->outputs = field + 1;
    region->passes |= origin >= 0;
    region->maps_windows = region->outputs == 1 && itemsize && origin < 0;
}

void xs_region_uses(xs_op *op, uint64_t fields, uint64_t walked)
{
    ((xs_region *)op)->used = fields;
    ((xs_region *)op)->walked = walked;
}

/* Of the region, and of its clones in other parts; the region's failure is that of an earlier tuple. */
int32_t xs_region_rerun(xs_op *op)
{
    int64_t status = ((xs_region *)op)->frame[XS_REGION_STATUS];
    for (int32_t part = 0; op->clone && part < op->clones && !status; part++)
        if (op->clone[part]) status = ((xs_region *)op->clone[part])->frame[XS_REGION_STATUS];
    return status == XS_REGION_RERUN;
}

static void add_counts(const xs_region *region, int32_t i, xs_op_stats *out)
{
    const int64_t *tuples = region->frame + region->members_at + region->members;
    const int64_t *samples = tuples + region->members;
    if (i) out->tuples += counter_get(&tuples[i]), out->samples += counter_get(&samples[i]);
    if (i + 1 < region->members) out->emitted += counter_get(&tuples[i + 1]);
}

/* The output of one member is the input of the next. */
void xs_region_stats(xs_op *op, int32_t i, xs_op_stats *out)
{
    const xs_region *region = (xs_region *)op;
    xs_op_stats whole;
    xs_op_stats_read(op, &whole);
    *out = i ? (xs_op_stats){0} : whole;
    out->emitted = i + 1 < region->members ? 0 : whole.emitted;
    add_counts(region, i, out);
    for (int32_t part = 0; op->clone && part < op->clones; part++)
        if (op->clone[part]) add_counts((const xs_region *)op->clone[part], i, out);
}
