/* Operators that call a compiled kernel through a function pointer. */
#ifndef XS_KERNEL_H
#define XS_KERNEL_H
#include "../engine/operator.h"

/* A compiled kernel. `call` gets a frame of 64-bit words, laid out by xstream/kernels/_frame.py: the
 * words below, then inputs (three words for a segment: address, width, start; one for a scalar),
 * arguments, states (address and length) and outputs. */
typedef enum { XS_KERNEL_MAP, XS_KERNEL_FILTER, XS_KERNEL_ITERATE } xs_kernel_mode;
typedef enum {
    XS_FRAME_SELF,    /* the operator */
    XS_FRAME_ALLOCATE, /* char *(*)(int64_t *frame, int64_t field, int64_t width, int64_t start) */
    XS_FRAME_SEND,    /* int64_t (*)(int64_t *frame): emits the current outputs */
    XS_FRAME_RAISED,  /* the Python exception that the kernel raised, a new reference; or 0 */
    XS_FRAME_VERDICT, /* map: emit or not; filter: pass or not */
    XS_FRAME_ENDED,   /* 1 in the call after the last tuple, with empty inputs */
    XS_FRAME_KEEP,    /* char *(*)(int64_t *frame, int64_t field, int64_t width, int64_t start,
                         const char *data, xs_meminfo *owner): like XS_FRAME_ALLOCATE for samples that
                         are at `data` already; NULL where they need not be copied */
    XS_FRAME_PIECES,  /* bit mask of the input fields whose address is that of a table of pieces */
    XS_FRAME_INPUTS   /* the first word of the inputs */
} xs_frame_word;
/* Where an output segment starts: at the input's start, at that scaled by num/den, after the last
 * output, or where the kernel says. */
typedef enum { XS_START_INPUT, XS_START_SCALED, XS_START_RUNNING, XS_START_GIVEN } xs_start_rule;

xs_op *xs_op_kernel(xs_plan *plan, int64_t call_address, int32_t mode, int32_t words,
                    int32_t outputs_at, int32_t states_at, int32_t states);
int64_t *xs_kernel_frame(xs_op *op);
void xs_kernel_output(xs_op *op, int32_t field, int64_t itemsize, int32_t start_rule, int64_t num,
                      int64_t den);
/* Sets state k to `length` items of `itemsize` bytes, copied from `bytes`. */
int32_t xs_kernel_state(xs_op *op, int32_t k, int64_t length, int64_t itemsize, const void *bytes);
/* Sets which input fields are written to the frame, as a bit mask; the default is all. */
void xs_kernel_uses(xs_op *op, uint64_t fields);
/* Sets which of them are walked piece by piece, and need not be contiguous; the default is none. */
void xs_kernel_walks(xs_op *op, uint64_t fields);
/* Calls a kernel that takes one array and returns one number, independently of the plan's scheduling.
 * `samples` are values of eight bytes. Returns XS_FAILED if the kernel raised. */
int32_t xs_kernel_number(xs_op *op, const void *samples, int64_t width, int64_t *result);
/* Declares that each sample of the only output is computed from the sample of `field` at the same
 * position and has the same size. The output then reuses the memory of an input that is not shared. */
void xs_kernel_in_place(xs_op *op, int32_t field);
/* Requests one more call of the kernel after its streams have ended. */
void xs_kernel_at_end(xs_op *op);
/* Debug mode: a kernel records an out-of-bounds index before it raises, because numba's errors carry
 * no numbers. The record is thread-local: index, axis, size. */
void xs_note_index(int64_t index, int64_t axis, int64_t size);
const int64_t *xs_noted_index(void);
/* Grows the state array at `data` to `length` items; new items are zero. Returns the new address, or
 * NULL. The header of a state array ends with XS_STATE_MARK and the address of this function. */
typedef enum { XS_STATE_MARK = 0x57A7E } xs_state_mark;
void *xs_state_grow(void *data, int64_t length);

/* A region: a chain of kernels compiled into one function, with direct calls between them. `call` gets
 * a frame that begins like a kernel's. Each member keeps its own frame with its arguments and states.
 * xstream/kernels/_region.py lays out the rest: inputs, the members' frames, tuple and sample counts
 * of each member, outputs. */
typedef enum {
    XS_REGION_STATUS = XS_FRAME_PIECES + 1, /* 0, or xs_region_status */
    XS_REGION_STAGE,   /* the member that the status refers to */
    XS_REGION_ENDED,   /* the member, counted from 1, whose streams have ended; 0 for a tuple */
    XS_REGION_OUTSIDE, /* void (*)(int64_t *frame, int64_t stage, int64_t start, int64_t width) */
    XS_REGION_KEEP,    /* void (*)(int64_t *frame, int64_t stage, int64_t field, const void *samples,
                          int64_t width, int64_t start): copies an array that the member failed on */
    XS_REGION_ROWS,    /* inputs without segments: the address of the first tuple */
    XS_REGION_COUNT,   /* number of contiguous tuples */
    XS_REGION_INPUTS   /* the first word of the inputs, if they have segments */
} xs_region_word;
typedef enum {
    XS_REGION_RAISED = 1, /* the member raised; the numbers of its tuple are in its frame */
    XS_REGION_UNFIT,      /* its output could not be allocated; numbers as above */
    XS_REGION_RERUN,      /* it failed, or a loop fused with it; numbers as above */
    XS_REGION_PASSED_ON   /* an operator downstream of the region failed */
} xs_region_status;

xs_op *xs_op_region(xs_plan *plan, int64_t call_address, int32_t words, int32_t outputs_at,
                    int32_t members_at, int32_t members);
/* Sets member i: an operator of the same plan without other connections. `itemsizes` has the item size
 * of each input field of a kernel, 0 for a scalar. An operator without fields is not a kernel. */
void xs_region_member(xs_op *op, int32_t i, xs_op *member, int32_t fields, const int64_t *itemsizes);
/* Sets an output field: bytes per sample (0: a scalar), or the input field that it passes through. */
void xs_region_output(xs_op *op, int32_t field, int64_t itemsize, int32_t origin);
/* Sets which input fields are read as arrays, and which others are only walked piece by piece. */
void xs_region_uses(xs_op *op, uint64_t fields, uint64_t walked);
/* The counters of member i as if it ran alone; the time of the whole region counts for member 0. */
void xs_region_stats(xs_op *op, int32_t i, xs_op_stats *out);
/* True if the failing member is only found by running the tuple again, member by member. */
int32_t xs_region_rerun(xs_op *op);

/* Numba's control block of an array's memory; compiled code updates the reference count in its first
 * word. */
typedef struct xs_meminfo xs_meminfo;
/* Sets numba's function for dropping a reference to such memory. */
void xs_kernel_numba(int64_t release_address);

#endif
