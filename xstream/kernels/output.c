/* The segments that kernels write: new ones, an input that is taken over, and memory that is shared or
 * adopted instead of copied. */
#include "internal.h"

enum { ADOPTED_MIN = 512 }; /* bytes from which wrapping an array in a block costs less than copying it */

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
void kernel_give_back(xs_kernel *kernel)
{
    xs_output *output = &kernel->output[0];
    if (!kernel->taken_from || kernel->taken_from->seg || !output->seg) return;
    output->seg->start = kernel->start;
    kernel->taken_from->seg = output->seg;
    output->seg = NULL;
}

void *kernel_allocate(int64_t *frame, int64_t field, int64_t width, int64_t start)
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
    xs_manager *manager = kernel->op.plan->manager;
    if (output->aside) {
        xs_seg *aside = output->aside;
        output->aside = NULL;
        if (likely(seg_take_up(aside, manager, start, width, kernel->first_data))) {
            output->seg = aside;
            output->next = start + width;
            return aside->block->data;
        }
        seg_free_aside(aside);
    }
    output->seg = xs_seg_new_beside(manager, start, width, output->itemsize, kernel->first_data);
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

void *kernel_keep(int64_t *frame, int64_t field, int64_t width, int64_t given_start,
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
    if (!seg) return kernel_allocate(frame, field, width, given_start);
    if (output->seg) xs_seg_drop(output->seg);
    output->seg = seg;
    output->next = start + width;
    return NULL;
}
