/* Images: the state of a plan as bytes, written to a file and loaded into another plan of the same
 * query. */
#ifndef XS_IMAGE_H
#define XS_IMAGE_H
#include "plan.h"

/* An image is taken while no operator runs. It copies small state and refers to large arrays, so it is
 * written before the plan runs on, or by a child process, whose memory does not change. */
typedef struct xs_image xs_image;
xs_image *xs_image_new(void);
void xs_image_drop(xs_image *image);
int64_t xs_image_length(const xs_image *image);
/* True if operators of this kind have no state, or can save it. */
int32_t xs_op_saves(const xs_op *op);
int32_t xs_op_number(const xs_op *op);
/* Tuples, samples, emitted tuples, busy nanoseconds and dropped tuples of each operator. */
void xs_ops_counters(xs_op **ops, int32_t count, int64_t *out);
/* False after the sources have ended: then nothing can be saved. */
int32_t xs_plan_saves(const xs_plan *plan);
int32_t xs_plan_save(xs_plan *plan, xs_image *image); /* XS_FAILED: no memory */

/* The contents of a file around an image; the checksum of everything follows at its end. */
typedef struct {
    const void *front, *back;
    int64_t front_bytes, back_bytes;
} xs_around;
/* Writes a file and flushes it to disk. Returns 0 or errno. */
int32_t xs_image_write(const xs_image *image, const xs_around *around, int32_t file);
/* The same in a child process. Returns its number, or -1: it could not be started. */
int64_t xs_image_write_in_child(const xs_image *image, const xs_around *around, int32_t file);
/* Whether such a child has ended: -1 not yet, 0 it has written the file, otherwise errno. */
int32_t xs_image_written(int64_t child, int32_t wait);
uint32_t xs_crc32c(uint32_t before, const void *bytes, int64_t count);

/* Sizes of the samples of each input field of an operator, of all ports in sequence; 0 for scalars. For
 * a source those of its output fields. */
typedef struct {
    xs_op *op;
    const int64_t *itemsize;
} xs_sizes;
/* Loads an image into a plan that has not run yet. Returns NULL, or what is wrong with it. Bytes are
 * checked: no contents lead to a read or write outside of memory, except through a kernel that uses
 * its own state as indices. */
const char *xs_plan_load(xs_plan *plan, const void *bytes, int64_t count, const xs_sizes *sizes,
                         int32_t ops, int32_t *failed_op);

#endif
