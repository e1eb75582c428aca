/* Compiled kernels: the core fills a frame, calls a function pointer and emits the results. This file
 * does not depend on numba; xstream/kernels/_adapter.py generates the code that reads the frame. */
#include <sys/mman.h>

#include "internal.h"
#include "kernel.h"

enum {
    OWN_PAGES = 1 << 17, /* bytes from which a state array is mapped on its own */
    SPARE = 4,           /* capacity of a mapped array as a multiple of its size */
    ADOPTED_MIN = 512,   /* bytes from which wrapping an array in a block costs less than copying it */
};

/* Header of every state array, so that a kernel can grow the array given only its address. */
typedef struct xs_state {
    struct xs_kernel *kernel;
    struct xs_state *outgrown; /* link in the list of arrays to free after the call */
    int64_t k, length, itemsize, capacity;
    int64_t mapped; /* bytes mapped for this array; 0: it is on the heap */
    int64_t padding; /* aligns the array to 16 bytes */
    int64_t mark; /* XS_STATE_MARK */
    void *(*grow)(void *data, int64_t length);
} xs_state;

typedef struct {
    int64_t itemsize; /* 0: a scalar */
    int32_t rule;
    int64_t num, den, next;
    xs_seg *seg; /* allocated but not sent yet */
} xs_output;

/* The fields that every call uses share one cache line, next to the operator's and the frame's,
 * because a long chain of operators does not fit into the L1 cache. */
typedef struct xs_kernel {
    xs_op op;
    _Alignas(64) void (*call)(int64_t *frame);
    xs_state *outgrown;
    int64_t start; /* start index of the first input segment */
    const void *first_data; /* and the address of its samples */
    const xs_slot *tuple;   /* the input of this call; NULL after the last tuple */
    xs_slot *taken_from; /* the slot whose segment the output may take over; NULL: shared */
    int32_t in_place; /* the field whose samples the output may overwrite; -1: none */
    int32_t mode;
    bool send_failed, at_end;
    bool filters_windows; /* only filters single windows; known after the first tuple */

    xs_output *output;
    uint64_t used; /* bit mask of the input fields that the kernel reads */
    xs_rolling **rolling; /* by state, NULL for arrays; NULL if no state is rolling */
    int32_t outputs_at, outputs, states_at, states;
    _Alignas(64) int64_t frame[];
} xs_kernel;

static xs_state *state_of(void *data) { return (xs_state *)data - 1; }

static xs_state *kernel_state(const xs_kernel *kernel, int32_t k)
{
    if (kernel->rolling && kernel->rolling[k]) return NULL;
    void *data = (void *)kernel->frame[kernel->states_at + 2 * k];
    return data ? state_of(data) : NULL;
}

/* Allocates zeroed memory for at least `capacity` items. Large arrays are mapped with spare capacity:
 * pages that are never written take no memory, so the array seldom has to move, and a replaced array
 * returns to the system at once. */
static xs_state *state_new(int64_t capacity, int64_t itemsize)
{
    int64_t bytes;
    if (__builtin_mul_overflow(capacity, itemsize, &bytes) || bytes > INT64_MAX / 8) return NULL;
    bytes += (int64_t)sizeof(xs_state);
    xs_state *state;
    if (bytes < OWN_PAGES) {
        state = calloc(1, (size_t)bytes);
        if (state) state->capacity = capacity;
        return state;
    }
    bytes *= SPARE;
    state = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (state == MAP_FAILED) return NULL;
    state->mapped = bytes;
    state->capacity = SPARE * capacity;
    return state;
}

static void state_free(xs_state *state)
{
    if (state && state->mapped) munmap(state, (size_t)state->mapped);
    else free(state);
}

/* -- functions that kernels call ----------------------------------------------------------- */

static int64_t output_start(const xs_kernel *kernel, const xs_output *output, int64_t given)
{
    switch (output->rule) {
    case XS_START_SCALED: {
        __int128 scaled = (__int128)kernel->start * output->num, start = scaled / output->den;
        if (scaled % output->den < 0) start--; /* rounds down, also below zero */
        if (start > INT64_MAX) return INT64_MAX; /* out of range; the caller checks */
        return start < INT64_MIN ? INT64_MIN : (int64_t)start;
    }
    case XS_START_RUNNING: return output->next;
    case XS_START_GIVEN: return given;
    default: return kernel->start;
    }
}

/* Turns the input segment into the output segment; the kernel overwrites its samples in place. */
static void *take_input(xs_kernel *kernel, xs_output *output, int64_t start)
{
    xs_seg *seg = kernel->taken_from->seg;
    kernel->taken_from->seg = NULL;
    seg->start = start;
    output->seg = seg;
    output->next = seg_stop(seg);
    return xs_seg_own_data(seg);
}

/* After a failure the error message shows the tuple, so it needs its segment back. */
static void give_back(xs_kernel *kernel)
{
    xs_output *output = &kernel->output[0];
    if (!kernel->taken_from || kernel->taken_from->seg || !output->seg) return;
    output->seg->start = kernel->start;
    kernel->taken_from->seg = output->seg;
    output->seg = NULL;
}

static void *frame_allocate(int64_t *frame, int64_t field, int64_t width, int64_t start)
{
    xs_kernel *kernel = (xs_kernel *)frame[XS_FRAME_SELF];
    xs_output *output = &kernel->output[field];
    if (output->seg) xs_seg_drop(output->seg);
    output->seg = NULL;
    start = output_start(kernel, output, start);
    if (kernel->taken_from && kernel->taken_from->seg && likely(indices_fit(start, width)) &&
        width == kernel->taken_from->seg->width)
        return take_input(kernel, output, start);
    if (unlikely(!indices_fit(start, width))) {
        kernel->send_failed = true;
        op_outside(&kernel->op, start, width);
        return NULL;
    }
    output->seg = xs_seg_new_beside(kernel->op.plan->manager, start, width, output->itemsize,
                                    kernel->first_data);
    if (!output->seg) {
        kernel->send_failed = true;
        op_out_of_memory(&kernel->op);
        return NULL;
    }
    output->next = start + width;
    return xs_seg_own_data(output->seg);
}

/* -- results without a copy ---------------------------------------------------------------- */

struct xs_meminfo {
    _Atomic size_t refs; /* the other fields are private to numba */
};

static void (*numba_release)(void *meminfo);

void xs_kernel_numba(int64_t release_address)
{
    numba_release = (void (*)(void *))release_address;
}

/* A large enough part of an input: another segment of the same block. */
static xs_seg *shared_input(const xs_kernel *kernel, const xs_output *output, int64_t start,
                            int64_t width, const char *data)
{
    if (!kernel->tuple || kernel->op.plan->manager->kind == XS_COPY_ALWAYS) return NULL;
    for (uint64_t left = kernel->op.in_shape[0].segments & kernel->used; left; left &= left - 1) {
        const xs_seg *seg = kernel->tuple[__builtin_ctzll(left)].seg;
        if (!seg || seg->itemsize != output->itemsize || 2 * width < seg->width) continue;
        xs_block *flat = atomic_load_explicit(&((xs_seg *)seg)->flat, memory_order_acquire);
        xs_block *block = seg->block ? seg->block : flat;
        if (!block) continue;
        const char *first = block->data + (seg->block ? seg->offset : 0);
        if (data < first || data + width * seg->itemsize > first + seg_bytes(seg)) continue;
        return seg_of_block(seg->manager, start, width, seg->itemsize, block_ref(block),
                            data - block->data);
    }
    return NULL;
}

/* An array that the kernel allocated and that has no other reference: its memory becomes a block. */
static xs_seg *adopted(const xs_kernel *kernel, const xs_output *output, int64_t start, int64_t width,
                       const char *data, xs_meminfo *owner)
{
    xs_manager *manager = kernel->op.plan->manager;
    int64_t bytes = width * output->itemsize;
    if (!owner || bytes < ADOPTED_MIN) return NULL;
    if (atomic_load_explicit(&owner->refs, memory_order_acquire) != 1) return NULL;
    atomic_fetch_add_explicit(&owner->refs, 1, memory_order_relaxed);
    xs_seg *seg = xs_seg_foreign(manager, start, width, output->itemsize, data, bytes, numba_release,
                                 owner);
    if (seg) TALLY_ADD(manager, allocations, 1);
    return seg;
}

static void *frame_keep(int64_t *frame, int64_t field, int64_t width, int64_t given_start,
                        const char *data, xs_meminfo *owner)
{
    xs_kernel *kernel = (xs_kernel *)frame[XS_FRAME_SELF];
    xs_output *output = &kernel->output[field];
    int64_t start = output_start(kernel, output, given_start);
    xs_seg *seg = NULL;
    if (width && likely(indices_fit(start, width))) {
        seg = owner ? adopted(kernel, output, start, width, data, owner)
                    : shared_input(kernel, output, start, width, data);
    }
    if (!seg) return frame_allocate(frame, field, width, given_start);
    if (output->seg) xs_seg_drop(output->seg);
    output->seg = seg;
    output->next = start + width;
    return NULL;
}

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

/* The kernel may still use the old array, so it is freed after the call. */
void *xs_state_grow(void *data, int64_t length)
{
    xs_kernel *kernel = state_of(data)->kernel;
    int32_t k = (int32_t)state_of(data)->k;
    xs_state *state = kernel_state(kernel, k);
    if (length > state->capacity) {
        int64_t capacity = length > 2 * state->capacity ? length : 2 * state->capacity;
        xs_state *grown = state_new(capacity, state->itemsize);
        if (!grown) return NULL;
        int64_t mapped = grown->mapped, room = grown->capacity;
        memcpy(grown, state, sizeof *state + (size_t)(state->length * state->itemsize));
        grown->capacity = room;
        grown->mapped = mapped;
        state->outgrown = kernel->outgrown;
        kernel->outgrown = state;
        state = grown;
    }
    if (length > state->length) state->length = length;
    kernel->frame[kernel->states_at + 2 * k] = (int64_t)(state + 1);
    kernel->frame[kernel->states_at + 2 * k + 1] = state->length;
    return state + 1;
}

static void free_outgrown(xs_kernel *kernel)
{
    while (kernel->outgrown) {
        xs_state *next = kernel->outgrown->outgrown;
        state_free(kernel->outgrown);
        kernel->outgrown = next;
    }
}

void kernel_free_outgrown(xs_op *op)
{
    if (unlikely(((xs_kernel *)op)->outgrown)) free_outgrown((xs_kernel *)op);
}

int32_t kernel_states(const xs_op *op) { return ((const xs_kernel *)op)->states; }

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
        const void *data;
        if (field == kernel->in_place && kernel->op.plan->given == tuple && xs_seg_is_own(seg)) {
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
    if (unlikely(kernel->outgrown)) free_outgrown(kernel);
    if (unlikely(frame[XS_FRAME_RAISED])) {
        status = op_fail(&kernel->op, "the kernel raised an error");
    } else if (kernel->mode == XS_KERNEL_FILTER) {
        return frame[XS_FRAME_VERDICT] ? XS_FORWARD : XS_OK;
    } else if (kernel->mode == XS_KERNEL_MAP && !kernel->send_failed) {
        status = (int32_t)frame_send(frame);
    }
    if (unlikely(status || kernel->send_failed)) {
        give_back(kernel);
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

static int32_t kernel_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_kernel *kernel = (xs_kernel *)op;
    if (likely(kernel->filters_windows) && likely(tuple->seg->block) &&
        tuple->seg->manager->kind != XS_REFCOUNT_REALLOC)
        return filter_window(kernel, tuple->seg);
    const xs_shape *shape = &op->in_shape[port];
    kernel->filters_windows = kernel->mode == XS_KERNEL_FILTER && shape->fields == 1 &&
                              shape->segments & kernel->used;
    xs_block *held[MAX_FIELDS];
    kernel->taken_from = NULL;
    kernel->tuple = tuple;
    int32_t holds = 0, status = fill_inputs(kernel, port, tuple, held, &holds);
    if (likely(!status)) {
        kernel->call(kernel->frame);
        status = after_call(kernel);
    }
    while (holds) xs_block_unhold(held[--holds]);
    return status;
}

/* Calls the kernel once more, on empty inputs, so that it can emit what is left in its state. */
static int32_t kernel_finish(xs_op *op)
{
    xs_kernel *kernel = (xs_kernel *)op;
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
    for (int32_t k = 0; k < kernel->states; k++) {
        state_free(kernel_state(kernel, k));
        if (kernel->rolling) rolling_free(kernel->rolling[k]);
    }
    free(kernel->rolling);
    free_outgrown(kernel);
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
    for (int32_t field = 0; field < clone->outputs; field++) clone->output[field].seg = NULL;
    clone->used = kernel->used;
    clone->in_place = kernel->in_place;
    return made;
}

static const xs_op_table kernel_table = {
    .process = kernel_process, .finish = kernel_finish, .destroy = kernel_destroy,
    .clone = kernel_clone, .stateless = kernel_stateless};

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
    kernel->mode = mode;
    kernel->outputs_at = outputs_at;
    kernel->states_at = states_at;
    kernel->used = UINT64_MAX;
    kernel->in_place = -1;
    kernel->states = states;
    frame[XS_FRAME_SELF] = (int64_t)kernel;
    frame[XS_FRAME_ALLOCATE] = (int64_t)frame_allocate;
    frame[XS_FRAME_SEND] = (int64_t)frame_send;
    frame[XS_FRAME_KEEP] = (int64_t)frame_keep;
    return &kernel->op;
}

bool kernel_keep_rolling(xs_op *op, int32_t k, xs_rolling *rolling)
{
    xs_kernel *kernel = (xs_kernel *)op;
    if (!kernel->rolling) kernel->rolling = calloc((size_t)kernel->states, sizeof *kernel->rolling);
    if (!kernel->rolling) return false;
    rolling_free(kernel->rolling[k]);
    kernel->rolling[k] = rolling;
    kernel->frame[kernel->states_at + 2 * k] = (int64_t)rolling;
    return true;
}

xs_rolling *kernel_rolling(xs_op *op, int32_t k) { return ((xs_kernel *)op)->rolling[k]; }

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
    if (kernel->outgrown) free_outgrown(kernel);
    if (kernel->frame[XS_FRAME_RAISED]) return XS_FAILED;
    *result = kernel->frame[kernel->outputs_at];
    return XS_OK;
}

void xs_kernel_at_end(xs_op *op) { ((xs_kernel *)op)->at_end = true; }

void xs_kernel_uses(xs_op *op, uint64_t fields) { ((xs_kernel *)op)->used = fields; }

void xs_kernel_in_place(xs_op *op, int32_t field) { ((xs_kernel *)op)->in_place = field; }

int64_t *xs_kernel_frame(xs_op *op) { return ((xs_kernel *)op)->frame; }

void xs_kernel_output(xs_op *op, int32_t field, int64_t itemsize, int32_t start_rule, int64_t num,
                      int64_t den)
{
    xs_kernel *kernel = (xs_kernel *)op;
    kernel->output[field] =
        (xs_output){.itemsize = itemsize, .rule = start_rule, .num = num, .den = den};
}

int32_t xs_kernel_state(xs_op *op, int32_t k, int64_t length, int64_t itemsize, const void *bytes)
{
    xs_kernel *kernel = (xs_kernel *)op;
    xs_state *state = state_new(length, itemsize);
    if (!state) return XS_FAILED;
    int64_t mapped = state->mapped, room = state->capacity;
    *state = (xs_state){.kernel = kernel, .k = k, .length = length, .itemsize = itemsize,
                        .capacity = room, .mapped = mapped, .mark = XS_STATE_MARK,
                        .grow = xs_state_grow};
    memcpy(state + 1, bytes, (size_t)(length * itemsize));
    state_free(kernel_state(kernel, k)); /* the replaced array */
    kernel->frame[kernel->states_at + 2 * k] = (int64_t)(state + 1);
    kernel->frame[kernel->states_at + 2 * k + 1] = length;
    return XS_OK;
}
