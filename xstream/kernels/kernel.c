/* Compiled kernels: the core fills a frame, calls a function pointer and emits the results. This file
 * does not depend on numba; xstream/kernels/_adapter.py generates the code that reads the frame. */
#include "internal.h"

/* -- functions that kernels call ----------------------------------------------------------- */

static int64_t frame_send(int64_t *frame)
{
    xs_kernel *kernel = (xs_kernel *)frame[XS_FRAME_SELF];
    if (kernel->send_failed) return XS_FAILED;
    const xs_shape *shape = &kernel->op.out[0].shape;
    xs_slot tuple[MAX_FIELDS];
    const int64_t *word = frame + kernel->outputs_at;
    for (int32_t field = 0; field < shape->fields; field++) {
        if (kernel->output[field].itemsize) {
            tuple[field].seg = kernel->output[field].seg;
            kernel->output[field].seg = NULL;
        } else {
            tuple[field].i = word[field];
        }
    }
    /* A kernel is never reentered while it emits, because cycles go through queues. */
    int32_t status = emit_giving(&kernel->op, 0, tuple, tuple);
    tuple_drop(tuple, shape->segments);
    if (status) kernel->send_failed = true;
    return status;
}

bool kernel_taken_over(xs_op *op)
{
    bool at_end = ((xs_kernel *)op)->at_end;
    ((xs_kernel *)op)->at_end = false;
    return at_end;
}

/* -- the operator -------------------------------------------------------------------------- */

const void *kernel_contiguous(xs_seg *seg, xs_block **hold)
{
    *hold = NULL;
    if (!seg->width) return seg;
    if (seg->block && seg->manager->kind != XS_REFCOUNT_REALLOC)
        return seg->block->data + seg->offset;
    return xs_seg_hold(seg, hold);
}

static int32_t fill_inputs(xs_kernel *kernel, int32_t port, const xs_slot *tuple, xs_block **held,
                           int32_t *holds)
{
    const xs_shape *shape = &kernel->op.in_shape[port];
    int64_t *word = kernel->frame + XS_FRAME_INPUTS;
    bool first = true;
    if (kernel->walked && !pieces_reserve(&kernel->pieces, tuple, kernel->walked))
        return op_out_of_memory(&kernel->op);
    for (int32_t field = 0; field < shape->fields; field++) {
        if (!(shape->segments >> field & 1)) {
            *word++ = tuple[field].i;
            continue;
        }
        if (!(kernel->used >> field & 1)) {
            word += 3; /* the adapter does not read these words */
            continue;
        }
        xs_seg *seg = tuple[field].seg;
        xs_block *hold = NULL;
        const void *data = kernel->walked >> field & 1 ? pieces_table(&kernel->pieces, seg) : NULL;
        if (data) {
            kernel->frame[XS_FRAME_PIECES] |= (int64_t)1 << field;
        } else if (field == kernel->in_place && kernel->op.plan->given == tuple && xs_seg_is_own(seg)) {
            kernel->taken_from = &kernel->op.plan->given[field];
            data = xs_seg_own_data(seg);
        } else {
            data = kernel_contiguous(seg, &hold);
        }
        if (unlikely(!data)) return op_out_of_memory(&kernel->op);
        if (hold) held[(*holds)++] = hold;
        *word++ = (int64_t)data;
        *word++ = seg->width;
        *word++ = seg->start;
        if (first) {
            kernel->start = seg->start;
            kernel->first_data = data;
        }
        first = false;
    }
    return XS_OK;
}

static int32_t after_call(xs_kernel *kernel)
{
    int64_t *frame = kernel->frame;
    int32_t status = XS_OK;
    if (unlikely(kernel->outgrown)) kernel_free_outgrown(&kernel->op);
    if (unlikely(frame[XS_FRAME_RAISED])) {
        status = op_fail(&kernel->op, "the kernel raised an error");
    } else if (kernel->mode == XS_KERNEL_FILTER) {
        return frame[XS_FRAME_VERDICT] ? XS_FORWARD : XS_OK;
    } else if (kernel->mode == XS_KERNEL_MAP && !kernel->send_failed) {
        status = (int32_t)frame_send(frame);
    }
    if (unlikely(status || kernel->send_failed)) {
        kernel_give_back(kernel);
        for (int32_t field = 0; field < kernel->outputs; field++) {
            if (kernel->output[field].seg) xs_seg_drop(kernel->output[field].seg);
            kernel->output[field].seg = NULL;
        }
        return XS_FAILED;
    }
    return XS_OK;
}

/* Prefetches the next operator while this one runs. */
static void prefetch_kernel(const xs_op *op)
{
    if (!op) return;
    const char *at = (const char *)op; /* not always a kernel, but a prefetch is only a hint */
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + offsetof(xs_kernel, call));
    __builtin_prefetch(at + offsetof(xs_kernel, frame), 1);
    __builtin_prefetch(at + offsetof(xs_kernel, frame) + 64, 1);
}

/* Fast path for filters: one window in one block, one flag as the result. */
static int32_t filter_window(xs_kernel *kernel, const xs_seg *seg)
{
    int64_t *frame = kernel->frame;
    frame[XS_FRAME_INPUTS] = (int64_t)(seg->block->data + seg->offset);
    frame[XS_FRAME_INPUTS + 1] = seg->width;
    frame[XS_FRAME_INPUTS + 2] = seg->start;
    prefetch_kernel(kernel->op.only);
    kernel->call(frame);
    if (unlikely(kernel->outgrown || frame[XS_FRAME_RAISED])) return after_call(kernel);
    return frame[XS_FRAME_VERDICT] ? XS_FORWARD : XS_OK;
}

/* Fast path for maps: one window in one block, one window as the result. */
static int32_t map_window(xs_kernel *kernel, const xs_slot *tuple)
{
    xs_seg *seg = tuple->seg;
    int64_t *frame = kernel->frame;
    xs_plan *plan = kernel->op.plan;
    xs_output *output = &kernel->output[0];
    bool own = kernel->in_place == 0 && plan->given == tuple && xs_seg_is_own(seg);
    kernel->taken_from = own ? plan->given : NULL;
    kernel->tuple = tuple;
    kernel->start = seg->start;
    kernel->first_data = seg->block->data + seg->offset;
    frame[XS_FRAME_INPUTS] = (int64_t)kernel->first_data;
    frame[XS_FRAME_INPUTS + 1] = seg->width;
    frame[XS_FRAME_INPUTS + 2] = seg->start;
    kernel->call(frame);
    if (unlikely(kernel->outgrown || frame[XS_FRAME_RAISED] || kernel->send_failed))
        return after_call(kernel);
    if (kernel->in_place == 0) /* a loop over single samples, which waits for memory */
        prefetch_behind(&kernel->behind, &kernel->in_a_row, kernel->first_data, seg_bytes(seg), true);
    xs_slot made = {.seg = output->seg};
    output->seg = NULL;
    int32_t status = emit_giving(&kernel->op, 0, &made, &made);
    if (likely(made.seg)) {
        if (!output->aside && seg_set_aside(made.seg)) output->aside = made.seg;
        else xs_seg_drop(made.seg);
    }
    if (unlikely(status)) kernel->send_failed = true;
    return status;
}

/* Fast path for tuples without segments. */
static int32_t process_numbers(xs_kernel *kernel, int32_t port, const xs_slot *tuple)
{
    int64_t *frame = kernel->frame;
    for (int32_t field = 0; field < kernel->op.in_shape[port].fields; field++)
        frame[XS_FRAME_INPUTS + field] = tuple[field].i;
    kernel->call(frame);
    bool failed = kernel->outgrown || frame[XS_FRAME_RAISED] || kernel->send_failed;
    if (unlikely(failed) || kernel->mode == XS_KERNEL_MAP) return after_call(kernel);
    return kernel->mode == XS_KERNEL_FILTER && frame[XS_FRAME_VERDICT] ? XS_FORWARD : XS_OK;
}

static xs_kernel_path path_of(const xs_kernel *kernel, int32_t port)
{
    const xs_shape *shape = &kernel->op.in_shape[port];
    if (!shape->segments) return PATH_NUMBERS;
    if (!is_window(shape) || !(kernel->used & 1)) return PATH_ANY;
    if (kernel->mode == XS_KERNEL_FILTER) return PATH_FILTERS_WINDOWS;
    bool maps = kernel->mode == XS_KERNEL_MAP && is_window(&kernel->op.out[0].shape);
    return maps ? PATH_MAPS_WINDOWS : PATH_ANY;
}

static int32_t kernel_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_kernel *kernel = (xs_kernel *)op;
    if (kernel->path == PATH_NUMBERS) return process_numbers(kernel, port, tuple);
    if (likely(kernel->path != PATH_ANY)) {
        if (unlikely(kernel->path == PATH_UNKNOWN)) kernel->path = (int8_t)path_of(kernel, port);
        else if (likely(tuple->seg->block) && tuple->seg->manager->kind != XS_REFCOUNT_REALLOC)
            return kernel->path == PATH_MAPS_WINDOWS ? map_window(kernel, tuple)
                                                     : filter_window(kernel, tuple->seg);
    }
    xs_block *held[MAX_FIELDS];
    kernel->taken_from = NULL;
    kernel->tuple = tuple;
    int32_t holds = 0, status = fill_inputs(kernel, port, tuple, held, &holds);
    if (likely(!status)) {
        kernel->call(kernel->frame);
        status = after_call(kernel);
    }
    kernel->frame[XS_FRAME_PIECES] = 0;
    while (holds) xs_block_unhold(held[--holds]);
    return status;
}

static void free_aside(xs_kernel *kernel)
{
    for (int32_t field = 0; field < kernel->outputs; field++) {
        if (kernel->output[field].aside) seg_free_aside(kernel->output[field].aside);
        kernel->output[field].aside = NULL;
    }
}

/* Calls the kernel once more, on empty inputs, so that it can emit what is left in its state. */
static int32_t kernel_finish(xs_op *op)
{
    xs_kernel *kernel = (xs_kernel *)op;
    free_aside(kernel);
    if (!kernel->at_end) return XS_OK;
    const xs_shape *shape = &op->in_shape[0];
    int64_t *word = kernel->frame + XS_FRAME_INPUTS;
    for (int32_t field = 0; field < shape->fields; field++) {
        bool segment = shape->segments >> field & 1;
        *word++ = segment ? (int64_t)kernel : 0; /* never dereferenced */
        if (!segment) continue;
        *word++ = 0;
        *word++ = 0;
    }
    kernel->taken_from = NULL;
    kernel->tuple = NULL;
    kernel->frame[XS_FRAME_ENDED] = 1;
    kernel->call(kernel->frame);
    int32_t status = after_call(kernel);
    return status == XS_FORWARD ? XS_OK : status; /* a filter has no tuple to pass on here */
}

static void kernel_destroy(xs_op *op)
{
    xs_kernel *kernel = (xs_kernel *)op;
    kernel_free_states(kernel);
    free_aside(kernel);
    pieces_free(&kernel->pieces);
    for (int32_t field = 0; field < kernel->outputs; field++)
        if (kernel->output[field].seg) xs_seg_drop(kernel->output[field].seg);
    free(kernel->output);
}

/* True if the output depends on the current tuple only. */
static bool kernel_stateless(const xs_op *op)
{
    const xs_kernel *kernel = (const xs_kernel *)op;
    bool stateless = !kernel->states && !kernel->at_end;
    for (int32_t field = 0; field < kernel->outputs; field++)
        stateless &= kernel->output[field].rule != XS_START_RUNNING;
    return stateless;
}

static xs_op *kernel_clone(xs_op *op, xs_plan *plan)
{
    const xs_kernel *kernel = (xs_kernel *)op;
    int32_t words = kernel->outputs_at + kernel->outputs;
    xs_op *made = xs_op_kernel(plan, (int64_t)kernel->call, kernel->mode, words,
                               kernel->outputs_at, kernel->states_at, 0);
    if (!made) return NULL;
    xs_kernel *clone = (xs_kernel *)made;
    memcpy(clone->frame + XS_FRAME_INPUTS, kernel->frame + XS_FRAME_INPUTS,
           (size_t)(words - XS_FRAME_INPUTS) * sizeof *clone->frame);
    memcpy(clone->output, kernel->output, (size_t)kernel->outputs * sizeof *clone->output);
    for (int32_t field = 0; field < clone->outputs; field++)
        clone->output[field].seg = clone->output[field].aside = NULL;
    clone->used = kernel->used;
    clone->walked = kernel->walked;
    clone->in_place = kernel->in_place;
    return made;
}

static const xs_op_table kernel_table = {
    .process = kernel_process, .finish = kernel_finish, .destroy = kernel_destroy,
    .clone = kernel_clone, .stateless = kernel_stateless, .save = kernel_save, .load = kernel_load};

xs_op *xs_op_kernel(xs_plan *plan, int64_t call_address, int32_t mode, int32_t words,
                    int32_t outputs_at, int32_t states_at, int32_t states)
{
    int32_t outputs = words - outputs_at;
    size_t size = sizeof(xs_kernel) + ((size_t)words + 1) * sizeof(int64_t);
    xs_output *output = calloc((size_t)outputs + 1, sizeof *output);
    xs_kernel *kernel = output ? op_new(plan, size, &kernel_table) : NULL;
    if (!kernel) {
        free(output);
        return NULL;
    }
    int64_t *frame = kernel->frame;
    kernel->output = output;
    kernel->outputs = outputs;
    kernel->call = (void (*)(int64_t *))call_address;
    kernel->mode = (int8_t)mode;
    kernel->outputs_at = outputs_at;
    kernel->states_at = states_at;
    kernel->used = UINT64_MAX;
    kernel->in_place = -1;
    kernel->states = states;
    frame[XS_FRAME_SELF] = (int64_t)kernel;
    frame[XS_FRAME_ALLOCATE] = (int64_t)kernel_allocate;
    frame[XS_FRAME_SEND] = (int64_t)frame_send;
    frame[XS_FRAME_KEEP] = (int64_t)kernel_keep;
    return &kernel->op;
}

static _Thread_local int64_t noted[3];

void xs_note_index(int64_t index, int64_t axis, int64_t size)
{
    noted[0] = index;
    noted[1] = axis;
    noted[2] = size;
}

const int64_t *xs_noted_index(void) { return noted; }

int32_t xs_kernel_number(xs_op *op, const void *samples, int64_t width, int64_t *result)
{
    xs_kernel *kernel = (xs_kernel *)op;
    int64_t *input = kernel->frame + XS_FRAME_INPUTS;
    input[0] = (int64_t)samples;
    input[1] = width;
    input[2] = 0;
    kernel->call(kernel->frame);
    if (kernel->outgrown) kernel_free_outgrown(op);
    if (kernel->frame[XS_FRAME_RAISED]) return XS_FAILED;
    *result = kernel->frame[kernel->outputs_at];
    return XS_OK;
}

void xs_kernel_at_end(xs_op *op) { ((xs_kernel *)op)->at_end = true; }

void xs_kernel_uses(xs_op *op, uint64_t fields) { ((xs_kernel *)op)->used = fields; }

void xs_kernel_walks(xs_op *op, uint64_t fields) { ((xs_kernel *)op)->walked = fields; }

void xs_kernel_in_place(xs_op *op, int32_t field) { ((xs_kernel *)op)->in_place = (int8_t)field; }

int64_t *xs_kernel_frame(xs_op *op) { return ((xs_kernel *)op)->frame; }

void xs_kernel_output(xs_op *op, int32_t field, int64_t itemsize, int32_t start_rule, int64_t num,
                      int64_t den)
{
    xs_kernel *kernel = (xs_kernel *)op;
    kernel->output[field] =
        (xs_output){.itemsize = itemsize, .rule = start_rule, .num = num, .den = den};
}
