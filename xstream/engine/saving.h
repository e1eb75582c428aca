/* How operators save their state into an image and load it. Values are 64-bit words; the bytes of
 * arrays are padded to words. */
#ifndef XS_SAVING_H
#define XS_SAVING_H
#include "engine.h"
#include "image.h"

void save_nothing(xs_op *op, xs_image *image); /* for operators without state */
void save_int(xs_image *image, int64_t value);
void save_words(xs_image *image, const void *words, int64_t count);
/* Bytes that stay where they are while the image is in use; large ones are not copied. */
void save_bytes(xs_image *image, const void *bytes, int64_t count);
/* A segment is saved once, however many operators have it; NULL is allowed. */
void save_segment(xs_image *image, xs_seg *seg);
void save_tuple(xs_image *image, const xs_slot *tuple, const xs_shape *shape);

/* The state of one operator while it is being loaded. Every function returns false if it does not fit;
 * the caller then returns false as well. */
typedef struct xs_stored xs_stored;
bool load_int(xs_stored *stored, int64_t *out);
bool load_range(xs_stored *stored, int64_t *out, int64_t low, int64_t high); /* both inclusive */
bool load_flag(xs_stored *stored, bool *out);
/* The number of items of which each takes at least `bytes` in the image. */
bool load_count(xs_stored *stored, int64_t bytes, int64_t *out);
bool load_words(xs_stored *stored, void *out, int64_t count);
const void *load_bytes(xs_stored *stored, int64_t count); /* NULL: fewer are left */
/* The counts go to the caller. Segments have the item size of the operator's field. Of a source they are
 * fields of its output ports. */
bool load_segment(xs_stored *stored, int32_t port, int32_t field, xs_seg **out);
bool load_tuple(xs_stored *stored, int32_t port, xs_slot *out);
int64_t load_itemsize(const xs_stored *stored, int32_t port, int32_t field); /* 0: a scalar */
/* For state that is not of an input: a segment of any item size from 1 on. */
bool load_any_segment(xs_stored *stored, int64_t itemsize, xs_seg **out);
bool load_refused(xs_stored *stored, const char *why);
#endif
