/* The state arrays of kernels: allocated, grown and freed here. */
#include <sys/mman.h>

#include "internal.h"

enum {
    OWN_PAGES = 1 << 17, /* bytes from which a state array is mapped on its own */
    SPARE = 4,           /* capacity of a mapped array as a multiple of its size */
};

/* Header of every state array, so that a kernel can grow the array given only its address. */
struct xs_state {
    struct xs_kernel *kernel;
    struct xs_state *outgrown; /* link in the list of arrays to free after the call */
    int64_t k, length, itemsize, capacity;
    int64_t mapped; /* bytes mapped for this array; 0: it is on the heap */
    int64_t padding; /* aligns the array to 16 bytes */
    int64_t mark; /* XS_STATE_MARK */
    void *(*grow)(void *data, int64_t length);
};

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

void kernel_free_outgrown(xs_op *op)
{
    xs_kernel *kernel = (xs_kernel *)op;
    while (kernel->outgrown) {
        xs_state *next = kernel->outgrown->outgrown;
        state_free(kernel->outgrown);
        kernel->outgrown = next;
    }
}

int32_t kernel_states(const xs_op *op) { return ((const xs_kernel *)op)->states; }

void kernel_free_states(xs_kernel *kernel)
{
    for (int32_t k = 0; k < kernel->states; k++) {
        state_free(kernel_state(kernel, k));
        if (kernel->rolling) rolling_free(kernel->rolling[k]);
    }
    free(kernel->rolling);
    kernel_free_outgrown(&kernel->op);
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

/* -- checkpoints --------------------------------------------------------------------------- */

/* Where the next output starts, for outputs that follow each other. A region has it in the frame of
 * its member, which has no function of its own. */
static int64_t *running_start(xs_kernel *kernel, int32_t field)
{
    return kernel->call ? &kernel->output[field].next : &kernel->frame[kernel->outputs_at + field];
}

void kernel_save(xs_op *op, xs_image *image)
{
    xs_kernel *kernel = (xs_kernel *)op;
    save_int(image, kernel->outputs);
    for (int32_t field = 0; field < kernel->outputs; field++)
        save_int(image, kernel->output[field].rule == XS_START_RUNNING ? *running_start(kernel, field) : 0);
    save_int(image, kernel->states);
    for (int32_t k = 0; k < kernel->states; k++) {
        const xs_state *state = kernel_state(kernel, k);
        save_int(image, state == NULL);
        if (!state) {
            save_segment(image, rolling_segment(kernel_rolling(op, k)));
            continue;
        }
        save_int(image, state->length);
        save_int(image, state->itemsize);
        save_bytes(image, state + 1, state->length * state->itemsize);
    }
}

static bool load_array(xs_op *op, xs_stored *stored, int32_t k, int64_t itemsize)
{
    int64_t length, size;
    if (!load_range(stored, &length, 0, INT64_MAX / 64) || !load_range(stored, &size, itemsize, itemsize))
        return false;
    if (length > INT64_MAX / 64 / size) return load_refused(stored, "it ends too early");
    const void *bytes = load_bytes(stored, length * size);
    if (!bytes) return false;
    return !xs_kernel_state(op, k, length, size, bytes) || load_refused(stored, "no memory is left");
}

static bool load_rolling(xs_op *op, xs_stored *stored, int32_t k)
{
    xs_seg *seg;
    if (!load_any_segment(stored, rolling_itemsize(kernel_rolling(op, k)), &seg)) return false;
    if (!seg) return load_refused(stored, "a segment is missing");
    return rolling_replace(kernel_rolling(op, k), seg) || load_refused(stored, "no memory is left");
}

bool kernel_load(xs_op *op, xs_stored *stored)
{
    xs_kernel *kernel = (xs_kernel *)op;
    int64_t count, start;
    if (!load_range(stored, &count, kernel->outputs, kernel->outputs)) return false;
    for (int32_t field = 0; field < kernel->outputs; field++) {
        if (!load_range(stored, &start, -INDEX_END, INDEX_END)) return false;
        if (kernel->output[field].rule == XS_START_RUNNING) *running_start(kernel, field) = start;
    }
    if (!load_range(stored, &count, kernel->states, kernel->states)) return false;
    for (int32_t k = 0; k < kernel->states; k++) {
        const xs_state *state = kernel_state(kernel, k);
        bool rolls;
        if (!load_flag(stored, &rolls)) return false;
        if (rolls != (state == NULL)) return load_refused(stored, "its state has another form");
        if (!(rolls ? load_rolling(op, stored, k) : load_array(op, stored, k, state->itemsize)))
            return false;
    }
    return true;
}
