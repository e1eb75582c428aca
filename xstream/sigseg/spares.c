/* Memory that was freed lately.
 *
 * A stream needs segments, and blocks of the same size, again and again. The C library takes its time
 * over blocks that are larger than it caches, and gives the largest back to the system, whose pages then
 * fault anew. So each thread keeps some of both, and takes the one that was freed last: it is the most
 * likely to be in the cache. A block that one thread allocates and another frees, the other one keeps.
 * Segments pass between threads by the million, so that threads exchange lists of spare ones: otherwise
 * the C library would lock and unlock the memory of one thread in the other. Sanitized builds keep none,
 * or a use after free would go unnoticed. */
#include "internal.h"

enum {
    SPARES = 8,           /* blocks */
    SPARE_MIN = 1 << 10,  /* bytes; malloc caches smaller ones itself */
    SPARE_MAX = 16 << 20, /* of one, and of all that a thread keeps */
    SPARE_SEGMENTS = 64,  /* in a list */
    LISTS = 32,           /* that wait for a thread that needs them */
};

typedef struct {
    xs_block *block[SPARES]; /* the one freed last is the last */
    int64_t count, bytes;
    xs_seg *seg; /* the one freed last; `spine` leads to the next */
    int32_t segments;
    xs_seg *full; /* another list, of SPARE_SEGMENTS; or NULL */
    bool freed_at_exit; /* of the thread */
} xs_spares;

static _Thread_local xs_spares spares __attribute__((tls_model("initial-exec")));
static pthread_key_t spares_key; /* frees them when their thread ends */
static pthread_once_t spares_once = PTHREAD_ONCE_INIT;

static void list_free(xs_seg *list)
{
    while (list) {
        xs_seg *seg = list;
        list = (xs_seg *)seg->spine;
        free(seg);
    }
}

static void spares_free(void *of_thread)
{
    xs_spares *kept = of_thread;
    while (kept->count) free(kept->block[--kept->count]);
    list_free(kept->seg);
    list_free(kept->full);
    kept->seg = kept->full = NULL;
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

/* Full lists that no thread keeps. */
static struct {
    pthread_mutex_t lock;
    _Atomic int32_t lists;
    xs_seg *list[LISTS];
} exchange = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void list_give(xs_seg *list)
{
    pthread_mutex_lock(&exchange.lock);
    int32_t lists = atomic_load_explicit(&exchange.lists, memory_order_relaxed);
    bool room = lists < LISTS;
    if (room) {
        exchange.list[lists] = list;
        atomic_store_explicit(&exchange.lists, lists + 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&exchange.lock);
    if (!room) list_free(list);
}

static xs_seg *list_get(void)
{
    if (!atomic_load_explicit(&exchange.lists, memory_order_relaxed)) return NULL;
    pthread_mutex_lock(&exchange.lock);
    int32_t lists = atomic_load_explicit(&exchange.lists, memory_order_relaxed);
    xs_seg *list = lists ? exchange.list[lists - 1] : NULL;
    if (list) atomic_store_explicit(&exchange.lists, lists - 1, memory_order_relaxed);
    pthread_mutex_unlock(&exchange.lock);
    return list;
}

/* The thread's own list is empty. */
static __attribute__((noinline)) xs_seg *take_from_list(xs_spares *kept)
{
    xs_seg *seg = kept->full;
    kept->full = NULL;
    if (!seg && KEEPING) seg = list_get();
    if (!seg) return malloc(sizeof *seg);
    kept->seg = (xs_seg *)seg->spine;
    kept->segments = SPARE_SEGMENTS - 1;
    return seg;
}

xs_seg *spare_seg_take(void)
{
    xs_spares *kept = &spares;
    xs_seg *seg = kept->seg;
    if (!seg) return take_from_list(kept);
    kept->seg = (xs_seg *)seg->spine;
    kept->segments--;
    return seg;
}

/* Two lists, so that a thread that takes and keeps segments by turns exchanges none. */
static __attribute__((noinline)) void begin_list(xs_spares *kept)
{
    if (kept->full) list_give(kept->full);
    kept->full = kept->seg;
    kept->seg = NULL;
    kept->segments = 0;
}

void spare_seg_keep(xs_seg *seg)
{
    xs_spares *kept = &spares;
    if (!KEEPING) {
        free(seg);
        return;
    }
    if (__builtin_expect(!kept->freed_at_exit, 0)) free_at_exit(kept);
    if (__builtin_expect(kept->segments == SPARE_SEGMENTS, 0)) begin_list(kept);
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
