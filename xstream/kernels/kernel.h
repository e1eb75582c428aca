/* Operators that call a compiled kernel through a function pointer. */
#ifndef XS_KERNEL_H
#define XS_KERNEL_H
#include "../engine/operator.h"

/* A compiled kernel. `call` gets a frame of 64-bit words, laid out by xstream/kernels/_frame.py: the
 * words below, then inputs (a segment takes three words: address, width, start; a scalar one),
 * arguments, states (address and length) and outputs. */
typedef enum { XS_KERNEL_MAP, XS_KERNEL_FILTER, XS_KERNEL_ITERATE } xs_kernel_mode;
typedef enum {
    XS_FRAME_SELF,    /* the operator */
    XS_FRAME_ALLOCATE, /* char *(*)(int64_t *frame, int64_t field, int64_t width, int64_t start) */
    XS_FRAME_SEND,    /* int64_t (*)(int64_t *frame): emits the outputs as they stand */
    XS_FRAME_RAISED,  /* what the kernel raised: an exception of Python, with a count; or 0 */
    XS_FRAME_VERDICT, /* map: emit or not; filter: pass or not */
    XS_FRAME_ENDED,   /* the call after the last tuple, with empty inputs */
    XS_FRAME_KEEP,    /* char *(*)(int64_t *frame, int64_t field, int64_t width, int64_t start,
                         const char *data, xs_meminfo *owner): like XS_FRAME_ALLOCATE for samples that
                         are at `data` already; NULL where they need not be copied */
    XS_FRAME_INPUTS   /* the first input word */
} xs_frame_word;
/* Where an output segment starts: where the input does, scaled by num/den, behind the last output,
 * or where the kernel says. */
typedef enum { XS_START_INPUT, XS_START_SCALED, XS_START_RUNNING, XS_START_GIVEN } xs_start_rule;

xs_op *xs_op_kernel(xs_plan *plan, int64_t call_address, int32_t mode, int32_t words,
                    int32_t outputs_at, int32_t states_at, int32_t states);
int64_t *xs_kernel_frame(xs_op *op);
void xs_kernel_output(xs_op *op, int32_t field, int64_t itemsize, int32_t start_rule, int64_t num,
                      int64_t den);
/* State k: `length` items of `itemsize` bytes, set from `bytes`. */
int32_t xs_kernel_state(xs_op *op, int32_t k, int64_t length, int64_t itemsize, const void *bytes);
/* Only these fields of the input, by bit, are put into the frame; at first all are. */
void xs_kernel_uses(xs_op *op, uint64_t fields);
/* Calls a kernel of one array that returns one number, outside of any plan's order: `samples` values
 * of eight bytes. The status is XS_FAILED where it raised. */
int32_t xs_kernel_number(xs_op *op, const void *samples, int64_t width, int64_t *result);
/* Each sample of the only output comes from the one in its place in this field, and has its size: they
 * may share memory where nobody else has the input. */
void xs_kernel_in_place(xs_op *op, int32_t field);
/* The kernel is called once more when its streams have ended. */
void xs_kernel_at_end(xs_op *op);
/* Debug mode: a kernel notes an index that is out of bounds before it raises; numba's errors carry
 * no numbers. The notes are the thread's own: index, axis, size. */
void xs_note_index(int64_t index, int64_t axis, int64_t size);
const int64_t *xs_noted_index(void);
/* Grows the state array at `data` to `length` items, new ones zero; where it is now, or NULL. In
 * front of a state array stand XS_STATE_MARK and, last, the address of this function. */
typedef enum { XS_STATE_MARK = 0x57A7E } xs_state_mark;
void *xs_state_grow(void *data, int64_t length);

/* A region: a chain of kernels compiled into one function, with direct calls between them. `call` gets
 * a frame that begins like a kernel's; the members keep frames of their own, with their arguments and
 * states. xstream/kernels/_region.py lays out the rest: inputs, the members' frames, how many tuples
 * and samples each member has had, outputs. */
typedef enum {
    XS_REGION_STATUS = XS_FRAME_KEEP + 1, /* 0, or xs_region_status */
    XS_REGION_STAGE,   /* which member that is about */
    XS_REGION_ENDED,   /* the member, counted from 1, whose streams have ended; 0: a tuple */
    XS_REGION_OUTSIDE, /* void (*)(int64_t *frame, int64_t stage, int64_t start, int64_t width) */
    XS_REGION_KEEP,    /* void (*)(int64_t *frame, int64_t stage, int64_t field, const void *samples,
                          int64_t width, int64_t start): copies an array that the member failed on */
    XS_REGION_ROWS,    /* inputs without segments: the address of the first tuple */
    XS_REGION_COUNT,   /* how many tuples there are, one after another */
    XS_REGION_INPUTS   /* the first input word, where inputs have segments */
} xs_region_word;
typedef enum {
    XS_REGION_RAISED = 1, /* the member raised; numbers of its tuple are in its frame */
    XS_REGION_UNFIT,      /* its output could not be made; likewise */
    XS_REGION_RERUN,      /* it, or one of the loops joined to it; likewise */
    XS_REGION_PASSED_ON   /* the failure is that of an operator behind the region */
} xs_region_status;

xs_op *xs_op_region(xs_plan *plan, int64_t call_address, int32_t words, int32_t outputs_at,
                    int32_t members_at, int32_t members);
/* Member i: an operator of the same plan that nothing else is connected to. `itemsizes`: of the input
 * fields of a kernel, 0 for a scalar; no fields: the operator is no kernel. */
void xs_region_member(xs_op *op, int32_t i, xs_op *member, int32_t fields, const int64_t *itemsizes);
/* Output field: bytes a sample (0: a scalar), or the number of the input field that it is. */
void xs_region_output(xs_op *op, int32_t field, int64_t itemsize, int32_t origin);
void xs_region_uses(xs_op *op, uint64_t fields);
/* What member i would have counted on its own; the time is that of the region, with member 0. */
void xs_region_stats(xs_op *op, int32_t i, xs_op_stats *out);
/* Whether the failure is one that only running the tuple again, member by member, can name. */
int32_t xs_region_rerun(xs_op *op);

/* What numba keeps of the memory of an array; compiled code counts its first word up and down. */
typedef struct xs_meminfo xs_meminfo;
/* Tells how numba gives up a count on such memory. */
void xs_kernel_numba(int64_t release_address);

#endif
