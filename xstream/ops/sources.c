/* Sources over data in memory: recordings as windows or sample by sample, and lists of tuples. */
#include "../engine/saving.h"
#include "operators.h"

typedef struct {
    xs_op op;
    _Alignas(64) xs_seg *recording; /* all that a window needs in one cache line */
    int64_t window, rounds_left; /* < 0: forever */
    int64_t at;                  /* position in the recording */
    int64_t index;               /* index of the next sample of the stream */
    bool partial;
    xs_seg *spare; /* the previous window if it has no other reference; reused for the next one */
    double offered_hz; /* 0: everything is available at the start */
    int64_t first_index, began_ns;
} xs_array_source;

/* The recording's samples [at, at + width) as a segment that starts at `index`. */
static xs_seg *part(xs_array_source *source, int64_t at, int64_t width, int64_t index)
{
    xs_seg *recording = source->recording;
    if (source->op.plan->copies) {
        xs_seg *copy = xs_seg_subseg(recording, recording->start + at, width);
        if (copy) copy->start = index; /* not shared yet */
        return copy;
    }
    int64_t offset = recording->offset + at * recording->itemsize;
    xs_seg *seg = source->spare;
    if (!seg)
        return seg_of_block(recording->manager, index, width, recording->itemsize,
                            block_ref(recording->block), offset);
    source->spare = NULL;
    seg->start = index;
    seg->width = width;
    seg->offset = offset;
    return seg;
}

/* Drops the segment of a tuple, or keeps it for reuse by the next window. */
static void window_drop(xs_array_source *source, xs_seg *window)
{
    bool reusable = window->block == source->recording->block && count_is_one(&window->refs);
    if (likely(reusable && !source->spare)) source->spare = window;
    else xs_seg_drop(window);
}

static int32_t array_end(xs_array_source *source)
{
    if (source->spare) xs_seg_drop(source->spare);
    source->spare = NULL;
    return XS_END;
}

/* The next samples, at most up to the end of the recording; advances the position. */
static xs_seg *take(xs_array_source *source, int64_t wanted, int64_t index)
{
    int64_t left = source->recording->width - source->at;
    int64_t width = wanted < left ? wanted : left;
    xs_seg *seg = part(source, source->at, width, index);
    source->at += width;
    if (source->at == source->recording->width && source->rounds_left != 1) {
        source->at = 0;
        if (source->rounds_left > 0) source->rounds_left--;
    }
    return seg;
}

/* A window past the largest index may still fit if the end of the recording shortens it. */
static bool last_samples_fit(const xs_array_source *source)
{
    int64_t left = source->recording->width - source->at;
    return source->rounds_left == 1 && indices_fit(source->index, left);
}

/* True if the next window has arrived. */
static bool arrived(xs_array_source *source)
{
    int64_t now = engine_now_ns();
    if (!source->began_ns) source->began_ns = now;
    double offered = (double)(now - source->began_ns) / 1e9 * source->offered_hz;
    return (double)(source->index + source->window - source->first_index) <= offered;
}

static int32_t array_produce(xs_op *op)
{
    xs_array_source *source = (xs_array_source *)op;
    if (source->offered_hz > 0 && !arrived(source)) return XS_WAIT;
    xs_seg *window = NULL;
    int64_t width = 0;
    if (unlikely(!indices_fit(source->index, source->window)) && source->at < source->recording->width &&
        !last_samples_fit(source))
        return op_outside(op, source->index, source->window);
    while (width < source->window && source->at < source->recording->width) {
        xs_seg *next = take(source, source->window - width, source->index + width);
        xs_seg *joined = next && window ? xs_seg_append(window, next) : next;
        if (window) {
            xs_seg_drop(window);
            if (next) xs_seg_drop(next);
        }
        if (!joined) return op_out_of_memory(op);
        window = joined;
        width = window->width;
    }
    if (!window) return array_end(source);
    source->index += width;
    if (width < source->window && !source->partial) {
        xs_seg_drop(window);
        return array_end(source);
    }
    xs_slot tuple = {.seg = window};
    counter_add(&op->samples, width);
    int32_t status = emit_giving(op, 0, &tuple, &tuple);
    if (likely(tuple.seg)) window_drop(source, tuple.seg);
    return status;
}

static void recording_destroy(xs_op *op)
{
    xs_array_source *source = (xs_array_source *)op;
    if (source->spare) xs_seg_drop(source->spare);
    xs_seg_drop(source->recording);
}

static void recording_save(xs_op *op, xs_image *image)
{
    const xs_array_source *source = (xs_array_source *)op;
    save_int(image, source->recording->width);
    save_int(image, source->at);
    save_int(image, source->index);
    save_int(image, source->rounds_left);
}

/* Whether the next sample is the one at the position: then no more rounds are left than were declared. */
static bool index_fits(const xs_array_source *source, int64_t repeat)
{
    uint64_t all = (uint64_t)source->recording->width;
    uint64_t before = (uint64_t)source->index - (uint64_t)source->recording->start - (uint64_t)source->at;
    if (!repeat) return (uint64_t)source->at == all && source->index == source->recording->start;
    if (repeat < 0) return all ? before % all == 0 : !before;
    return before == (uint64_t)(repeat - source->rounds_left) * all;
}

/* Samples that are offered at a rate arrive from the first call on, as in any run. */
static bool recording_load(xs_op *op, xs_stored *stored)
{
    xs_array_source *source = (xs_array_source *)op;
    const xs_seg *recording = source->recording;
    int64_t width, repeat = source->rounds_left, least = repeat > 0 ? 1 : repeat;
    if (!load_int(stored, &width)) return false;
    if (width != recording->width) return load_refused(stored, "its recording has another length");
    if (!load_range(stored, &source->at, 0, width) ||
        !load_range(stored, &source->index, recording->start, INDEX_END) ||
        !load_range(stored, &source->rounds_left, least, repeat))
        return false;
    if (!index_fits(source, repeat)) return load_refused(stored, "its next sample has another index");
    source->first_index = source->index;
    return true;
}

static const xs_op_table array_table = {
    .produce = array_produce, .destroy = recording_destroy, .save = recording_save,
    .load = recording_load};

/* Takes a reference to the recording as one contiguous range, since windows are parts of its block. */
static void *recording_source(xs_plan *plan, size_t size, const xs_op_table *table,
                              xs_seg *recording, int64_t repeat)
{
    xs_array_source *source = op_new(plan, size, table);
    if (!source) return NULL;
    source->recording = xs_seg_ref(recording);
    source->rounds_left = repeat;
    source->index = recording->start;
    if (!repeat) source->at = recording->width;
    return source;
}

xs_op *xs_op_array_source(xs_plan *plan, xs_seg *recording, int64_t window, int64_t repeat,
                          int32_t partial, double offered_hz)
{
    xs_array_source *source =
        recording_source(plan, sizeof *source, &array_table, recording, repeat);
    if (!source) return NULL;
    source->window = window;
    source->partial = partial;
    source->offered_hz = offered_hz;
    source->first_index = recording->start;
    return &source->op;
}

/* -- one tuple per sample ------------------------------------------------------------------- */

typedef struct {
    xs_array_source source;
    int32_t type;
} xs_sample_source;

/* The sample types, as xstream/engine/schema.py numbers them. */
enum { S_BOOL, S_I8, S_I16, S_I32, S_I64, S_U8, S_U16, S_U32, S_U64, S_F32, S_F64 };

static xs_slot sample_slot(const char *at, int32_t type)
{
    switch (type) {
    case S_BOOL: return (xs_slot){.i = *(const uint8_t *)at != 0};
    case S_I8: return (xs_slot){.i = *(const int8_t *)at};
    case S_I16: return (xs_slot){.i = *(const int16_t *)at};
    case S_I32: return (xs_slot){.i = *(const int32_t *)at};
    case S_U8: return (xs_slot){.i = *(const uint8_t *)at};
    case S_U16: return (xs_slot){.i = *(const uint16_t *)at};
    case S_U32: return (xs_slot){.i = *(const uint32_t *)at};
    case S_F32: return (xs_slot){.f = *(const float *)at};
    case S_F64: return (xs_slot){.f = *(const double *)at};
    default: return (xs_slot){.i = *(const int64_t *)at};
    }
}

static inline __attribute__((always_inline)) void fill_rows(xs_slot (*rows)[2], const char *at,
                                                            int64_t index, int64_t count,
                                                            int64_t itemsize, int32_t type)
{
    for (int64_t i = 0; i < count; i++) {
        rows[i][0].i = index + i;
        rows[i][1] = sample_slot(at + i * itemsize, type);
    }
}

/* Emits samples with their indices as timestamps, at most up to the end of the recording. */
static int32_t sample_produce_many(xs_op *op, int64_t most, int64_t *made)
{
    xs_sample_source *samples = (xs_sample_source *)op;
    xs_array_source *source = &samples->source;
    xs_seg *recording = source->recording;
    if (source->at == recording->width) {
        if (source->rounds_left >= 0 && source->rounds_left <= 1) return XS_END;
        if (source->rounds_left > 0) source->rounds_left--;
        source->at = 0;
        if (!recording->width) return XS_END;
    }
    int64_t left = recording->width - source->at, count = most < left ? most : left;
    const char *at = recording->block->data + recording->offset + source->at * recording->itemsize;
    xs_slot rows[MANY][2];
    switch (samples->type) { /* the compiler makes a loop without a switch of the common ones */
    case S_F32: fill_rows(rows, at, source->index, count, sizeof(float), S_F32); break;
    case S_F64: fill_rows(rows, at, source->index, count, sizeof(double), S_F64); break;
    case S_I16: fill_rows(rows, at, source->index, count, sizeof(int16_t), S_I16); break;
    default: fill_rows(rows, at, source->index, count, recording->itemsize, samples->type);
    }
    source->index += count;
    source->at += count;
    counter_add(&op->samples, count);
    *made = count;
    return count == 1 ? emit(op, 0, rows[0]) : emit_many(op, rows[0], count);
}

static int32_t sample_produce(xs_op *op)
{
    int64_t made;
    return sample_produce_many(op, 1, &made);
}

static const xs_op_table sample_table = {
    .produce = sample_produce, .produce_many = sample_produce_many, .destroy = recording_destroy,
    .save = recording_save, .load = recording_load};

xs_op *xs_op_sample_source(xs_plan *plan, xs_seg *recording, int32_t type, int64_t repeat)
{
    xs_sample_source *source =
        recording_source(plan, sizeof *source, &sample_table, recording, repeat);
    if (!source) return NULL;
    source->type = type;
    return &source->source.op;
}

/* -- a list of tuples ---------------------------------------------------------------------- */

typedef struct {
    xs_op op;
    const xs_slot *given;
    int64_t count, at;
} xs_list_source;

static int32_t list_produce(xs_op *op)
{
    xs_list_source *source = (xs_list_source *)op;
    if (source->at == source->count) return XS_END;
    const xs_shape *shape = &op->out[0].shape;
    const xs_slot *tuple = source->given + source->at++ * shape->fields;
    counter_add(&op->samples, shape->segments ? tuple[__builtin_ctzll(shape->segments)].seg->width : 1);
    return emit(op, 0, tuple);
}

static void list_save(xs_op *op, xs_image *image)
{
    save_int(image, ((xs_list_source *)op)->count);
    save_int(image, ((xs_list_source *)op)->at);
}

static bool list_load(xs_op *op, xs_stored *stored)
{
    xs_list_source *source = (xs_list_source *)op;
    int64_t count;
    return load_range(stored, &count, source->count, source->count) &&
           load_range(stored, &source->at, 0, source->count);
}

static const xs_op_table list_table = {.produce = list_produce, .save = list_save, .load = list_load};

/* The tuples belong to the caller, who keeps them until the plan is freed. */
xs_op *xs_op_list_source(xs_plan *plan, const xs_slot *tuples, int64_t count)
{
    xs_list_source *source = op_new(plan, sizeof *source, &list_table);
    if (!source) return NULL;
    source->given = tuples;
    source->count = count;
    return &source->op;
}
