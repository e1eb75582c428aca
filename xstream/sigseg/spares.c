/* Memory that was freed lately.
 *
 * A stream needs segments, and blocks of the same size, again and again. The C library takes its time
 * over blocks that are larger than it caches, and gives the largest back to the system, whose pages then
 * fault anew. So each thread keeps some of both, and takes the one that was freed last: it is the most
 * likely to be in the cache. What one thread allocates and another frees, the other one keeps. */
#include "internal.h"

enum {
    SPARES = 8,           /* blocks */
    SPARE_MIN = 1 << 10,  /* bytes; malloc caches smaller ones itself */
    SPARE_MAX = 16 << 20, /* of one, and of all that a thread keeps */
    SPARE_SEGMENTS = 64,
};

typedef struct {
    xs_block *block[SPARES]; /* the one freed last is the last */
    int64_t count, bytes;
    xs_seg *seg; /* the one freed last; `spine` leads to the next */
    int32_t segments;
    bool freed_at_exit; /* of the thread */
} xs_spares;

static _Thread_local xs_spares spares __attribute__((tls_model("initial-exec")));
static pthread_key_t spares_key; /* frees them when their thread ends */
static pthread_once_t spares_once = PTHREAD_ONCE_INIT;

static void spares_free(void *of_thread)
{
    xs_spares *kept = of_thread;
    while (kept->count) free(kept->block[--kept->count]);
    while (kept->seg) {
        xs_seg *seg = kept->seg;
        kept->seg = (xs_seg *)seg->spine;
        free(seg);
    }
    kept->bytes = 0;
    kept->segments = 0;
    kept->freed_at_exit = false; /* what other destructors free may be kept again */
}

static void spares_begin(void) { pthread_key_create(&spares_key, spares_free); }

static __attribute__((noinline)) void free_at_exit(xs_spares *kept)
{
    pthread_once(&spares_once, spares_begin);
    pthread_setspecific(spares_key, kept);
    kept->freed_at_exit = true;
}

/* -- segments ------------------------------------------------------------------------------ */

xs_seg *spare_seg_take(void)
{
    xs_spares *kept = &spares;
    xs_seg *seg = kept->seg;
    if (!seg) return malloc(sizeof *seg);
    kept->seg = (xs_seg *)seg->spine;
    kept->segments--;
    return seg;
}

void spare_seg_keep(xs_seg *seg)
{
    xs_spares *kept = &spares;
    if (!KEEPING || kept->segments == SPARE_SEGMENTS) {
        free(seg);
        return;
    }
    if (__builtin_expect(!kept->freed_at_exit, 0)) free_at_exit(kept);
    seg->spine = (xs_spine *)kept->seg;
    kept->seg = seg;
    kept->segments++;
}

/* -- blocks -------------------------------------------------------------------------------- */

static void spare_remove(xs_spares *kept, int64_t i)
{
    kept->bytes -= kept->block[i]->capacity;
    kept->count--;
    for (; i < kept->count; i++) kept->block[i] = kept->block[i + 1];
}

xs_block *spare_block_take(int64_t capacity)
{
    xs_spares *kept = &spares;
    for (int64_t i = kept->count - 1; i >= 0; i--)
        if (kept->block[i]->capacity == capacity) {
            xs_block *block = kept->block[i];
            spare_remove(kept, i);
            return block;
        }
    return NULL;
}

/* One that has been kept for long may have to go instead. */
void spare_block_keep(xs_block *block)
{
    xs_spares *kept = &spares;
    if (!KEEPING || block->capacity < SPARE_MIN || block->capacity > SPARE_MAX) {
        free(block);
        return;
    }
    if (__builtin_expect(!kept->freed_at_exit, 0)) free_at_exit(kept);
    while (kept->count == SPARES || (kept->count && kept->bytes + block->capacity > SPARE_MAX)) {
        xs_block *oldest = kept->block[0];
        spare_remove(kept, 0);
        free(oldest);
    }
    kept->block[kept->count++] = block;
    kept->bytes += block->capacity;
}
