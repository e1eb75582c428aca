/* Internal functions that the files of this directory share. */
#ifndef XS_KERNELS_INTERNAL_H
#define XS_KERNELS_INTERNAL_H
#include "../engine/saving.h"
#include "kernel.h"
#include "rolling.h"

typedef struct xs_state xs_state; /* the header of a state array (state.c) */

typedef struct {
    int64_t itemsize; /* 0: a scalar */
    int32_t rule;
    int64_t num, den, next;
    xs_seg *seg; /* allocated but not sent yet */
    xs_seg *aside; /* the one before, for reuse; or NULL */
} xs_output;

/* The pieces of walked segments, for compiled code (xstream/kernels/_pieces.py). A table has the number
 * of pieces, the position and the address of each, and the position after the last. */
typedef struct {
    int64_t *words, capacity, used;
} xs_pieces;
/* Makes room for the tables of the segments in `fields`; false if memory ran out. */
bool pieces_reserve(xs_pieces *pieces, const xs_slot *tuple, uint64_t fields);
/* The table of a segment, valid until the next call of pieces_reserve; NULL: it is one range. */
const int64_t *pieces_table(xs_pieces *pieces, const xs_seg *seg);
void pieces_free(xs_pieces *pieces);

/* How a kernel is called, known after its first tuple. */
typedef enum { PATH_UNKNOWN, PATH_FILTERS_WINDOWS, PATH_MAPS_WINDOWS, PATH_NUMBERS, PATH_ANY } xs_kernel_path;

/* The fields that every call uses share one cache line, next to the operator's and the frame's,
 * because a long chain of operators does not fit into the L1 cache. */
typedef struct xs_kernel {
    xs_op op;
    _Alignas(64) void (*call)(int64_t *frame);
    xs_state *outgrown;
    int64_t start; /* start index of the first input segment */
    const void *first_data; /* and the address of its samples */
    const char *behind;     /* of the input before: the address of its end */
    const xs_slot *tuple;   /* the input of this call; NULL after the last tuple */
    xs_slot *taken_from; /* the slot whose segment the output may take over; NULL: shared */
    int8_t in_place; /* the field whose samples the output may overwrite; -1: none */
    int8_t mode;     /* xs_kernel_mode */
    bool send_failed, at_end;
    int8_t path; /* xs_kernel_path */
    uint16_t in_a_row; /* inputs that lay behind the one before, up to now */

    xs_output *output;
    uint64_t used; /* bit mask of the input fields that the kernel reads */
    uint64_t walked; /* those of them whose segments it walks piece by piece */
    xs_pieces pieces;
    xs_rolling **rolling; /* by state, NULL for arrays; NULL if no state is rolling */
    int32_t outputs_at, outputs, states_at, states;
    _Alignas(64) int64_t frame[];
} xs_kernel;

void rolling_free(xs_rolling *rolling);
xs_seg *rolling_segment(const xs_rolling *rolling);
int64_t rolling_itemsize(const xs_rolling *rolling);
/* Replaces its samples; takes over the count, and copies the segment if it has others. */
bool rolling_replace(xs_rolling *rolling, xs_seg *seg);
/* Replaces state k by a rolling segment and frees the previous one. */
bool kernel_keep_rolling(xs_op *op, int32_t k, xs_rolling *rolling);
xs_rolling *kernel_rolling(xs_op *op, int32_t k);

/* The samples of a segment as one contiguous range. A segment of several pieces is joined and stays
 * joined; blocks that may move are pinned in `hold`. NULL if memory ran out. */
const void *kernel_contiguous(xs_seg *seg, xs_block **hold);
static inline bool is_window(const xs_shape *shape) { return shape->fields == 1 && shape->segments; }

/* Requests up to `most` bytes from an address on. */
static inline void prefetch_range(const char *at, int64_t bytes, int64_t most, bool into_l1)
{
    enum { LINE = 64 };
    if (bytes > most) bytes = most;
    _Pragma("GCC unroll 8") for (int64_t i = 0; i < bytes; i += LINE) {
        if (into_l1) __builtin_prefetch(at + i);
        else __builtin_prefetch(at + i, 0, 2);
        __asm__ volatile(""); /* gcc removes loops that do nothing else */
    }
}

/* Requests the samples behind a window, which are likely to be the next one: memory would be idle until
 * then. Only where the window itself lies behind the one before, whose end is in `behind`. A loop that
 * computes more needs the space in the L1 cache, and wants them in L2 only. One that computes little wants
 * more of them where so many windows lay in a row that they come from memory. */
static inline void prefetch_behind(const char **behind, uint16_t *in_a_row, const char *data, int64_t bytes,
                                   bool into_l1)
{
    enum { L1_BYTES = 2 << 10, L2_BYTES = 8 << 10, CACHED_BYTES = 16 << 20 };
    bool again = *behind == data;
    *behind = data + bytes;
    *in_a_row = !again ? 0 : *in_a_row < UINT16_MAX ? *in_a_row + 1 : UINT16_MAX;
    if (!again) return;
    if (into_l1 && *in_a_row * bytes > CACHED_BYTES) prefetch_range(data + bytes, bytes, L2_BYTES, false);
    prefetch_range(data + bytes, bytes / 2, into_l1 ? L1_BYTES : L2_BYTES, into_l1);
}

/* What the adapter of a kernel calls (XS_FRAME_ALLOCATE and XS_FRAME_KEEP in kernel.h). */
void *kernel_allocate(int64_t *frame, int64_t field, int64_t width, int64_t start);
void *kernel_keep(int64_t *frame, int64_t field, int64_t width, int64_t given_start, const char *data,
                  xs_meminfo *owner);
/* Returns an input segment that was taken over to its tuple. */
void kernel_give_back(xs_kernel *kernel);
void kernel_free_states(xs_kernel *kernel);
void kernel_save(xs_op *op, xs_image *image);
bool kernel_load(xs_op *op, xs_stored *stored);
/* Frees the state arrays that the last call replaced by larger ones. */
void kernel_free_outgrown(xs_op *op);
int32_t kernel_states(const xs_op *op); /* the number of states */
/* Called when a region takes over the calls of the kernel. Returns whether the kernel must also be
 * called after the last tuple. */
bool kernel_taken_over(xs_op *op);

#endif
