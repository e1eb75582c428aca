/* The blocks of managers. */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "internal.h"

enum { ALIGNMENT = 64 }; /* a cache line; recommended for Arrow and AVX-512 */

static char *aligned_after(void *memory, size_t header)
{
    uintptr_t at = (uintptr_t)memory + header;
    return (char *)((at + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
}

/* Only refcount-realloc moves data, so only it needs a header apart from the data. */
static bool data_apart(const xs_manager *manager) { return manager->kind == XS_REFCOUNT_REALLOC; }

/* Huge pages: fewer page faults when a large block is first written. */
static void prefer_huge_pages(char *data, int64_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { LARGE = 4 << 20, PAGE = 4096 };
    if (bytes < LARGE) return;
    char *from = (char *)(((uintptr_t)data + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    madvise(from, (size_t)(data + bytes - from) & ~(size_t)(PAGE - 1), MADV_HUGEPAGE);
#endif
}

/* -- memory that was freed lately ---------------------------------------------------------- */

/* A stream needs blocks of the same size again and again. The C library takes its time over those that
 * are larger than it caches, and gives the largest back to the system, whose pages then fault anew: so
 * each thread keeps a few. Sanitized builds keep none, or a use after free would go unnoticed. */
enum {
    SPARES = 8,
    SPARE_MIN = 1 << 10,  /* bytes; malloc caches smaller ones itself */
    SPARE_MAX = 16 << 20, /* of one, and of all that a thread keeps */
};

typedef struct {
    xs_block *block[SPARES]; /* the one freed last is the last */
    int64_t count, bytes;
    bool freed_at_exit; /* of the thread */
} xs_spares;

static _Thread_local xs_spares spares;
static pthread_key_t spares_key; /* frees them when their thread ends */
static pthread_once_t spares_once = PTHREAD_ONCE_INIT;

static void spares_free(void *of_thread)
{
    xs_spares *kept = of_thread;
    while (kept->count) free(kept->block[--kept->count]);
    kept->bytes = 0;
    kept->freed_at_exit = false; /* what other destructors free may be kept again */
}

static void spares_begin(void) { pthread_key_create(&spares_key, spares_free); }

static void spare_remove(xs_spares *kept, int64_t i)
{
    kept->bytes -= kept->block[i]->capacity;
    kept->count--;
    memmove(kept->block + i, kept->block + i + 1, (size_t)(kept->count - i) * sizeof *kept->block);
}

static xs_block *spare_take(int64_t capacity)
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

/* Keeps a block without users, or frees it; one that has been kept for long may have to go instead. */
static void spare_keep(xs_block *block)
{
    xs_spares *kept = &spares;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    bool fits = false;
#else
    bool fits = block->capacity >= SPARE_MIN && block->capacity <= SPARE_MAX;
#endif
    if (!fits) {
        free(block);
        return;
    }
    if (!kept->freed_at_exit) {
        pthread_once(&spares_once, spares_begin);
        pthread_setspecific(spares_key, kept);
        kept->freed_at_exit = true;
    }
    while (kept->count == SPARES || (kept->count && kept->bytes + block->capacity > SPARE_MAX)) {
        xs_block *oldest = kept->block[0];
        spare_remove(kept, 0);
        free(oldest);
    }
    kept->block[kept->count++] = block;
    kept->bytes += block->capacity;
}

/* -- blocks -------------------------------------------------------------------------------- */

/* A loop that reads at one address and writes at another is slowed down by half where the low twelve
 * bits of the second are just behind the first's: the processor takes the coming load for one of what was
 * just stored. Larger blocks therefore have some room to place their data away from what it is made of. */
enum { ROOM = 1024, ROOM_MIN = 4096, NEAR = 512, LOW_BITS = 4095 };

static size_t room_in(int64_t capacity) { return capacity >= ROOM_MIN ? ROOM : 0; }

static char *placed(xs_block *block, int64_t capacity, const void *beside)
{
    char *data = aligned_after(block, sizeof *block);
    uintptr_t behind = ((uintptr_t)data - (uintptr_t)beside + NEAR) & LOW_BITS;
    return beside && behind < 2 * NEAR ? data + room_in(capacity) : data;
}

/* A header with room for the data behind it, or with data of its own; NULL without memory. */
static xs_block *block_memory(bool apart, int64_t capacity, const void *beside, char **data)
{
    xs_block *block = apart ? NULL : spare_take(capacity);
    if (block) {
        *data = placed(block, capacity, beside);
        return block;
    }
    size_t inline_bytes = apart ? 0 : (size_t)capacity + ALIGNMENT + room_in(capacity);
    block = malloc(sizeof *block + inline_bytes);
    *data = !block ? NULL : apart ? malloc((size_t)capacity) : placed(block, capacity, beside);
    if (!*data) {
        free(block);
        return NULL;
    }
    prefer_huge_pages(*data, capacity);
    return block;
}

xs_block *block_new(xs_manager *manager, int64_t bytes, int64_t capacity, const void *beside)
{
    if (!book_bytes(manager, capacity)) return NULL;
    char *data;
    xs_block *block = block_memory(data_apart(manager), capacity, beside, &data);
    if (!block) {
        unbook_bytes(manager, capacity);
        return NULL;
    }
    note_peak(manager);
    *block = (xs_block){
        .refs = 1, .manager = manager, .data = data, .capacity = capacity, .used = bytes};
    manager_hold(manager);
    count_add(&tally_of(manager)->live_blocks, 1);
    count_add(&tally_of(manager)->allocations, 1);
    return block;
}

xs_block *block_foreign(xs_manager *manager, const void *data, int64_t booked,
                        void (*release)(void *owner), void *owner)
{
    if (!book_bytes(manager, booked)) return NULL;
    xs_block *block = malloc(sizeof *block);
    if (!block) {
        unbook_bytes(manager, booked);
        return NULL;
    }
    note_peak(manager);
    /* No segment ends at `used`, so that foreign memory is never extended. */
    *block = (xs_block){.manager = manager, .data = (char *)data, .capacity = booked, .used = -1,
                        .refs = 1, .release = release, .owner = owner};
    manager_hold(manager);
    count_add(&tally_of(manager)->live_blocks, 1);
    return block;
}

bool block_grow(xs_block *block, int64_t capacity)
{
    xs_manager *manager = block->manager;
    int64_t more = capacity - block->capacity;
    if (!book_bytes(manager, more)) return false;
    volatile uintptr_t before = (uintptr_t)block->data; /* only compared */
    char *data = realloc(block->data, (size_t)capacity);
    if (!data) {
        unbook_bytes(manager, more);
        return false;
    }
    note_peak(manager);
    count_add(&tally_of(manager)->reallocations, 1);
    if ((uintptr_t)data != before) count_add(&tally_of(manager)->moved_reallocations, 1);
    prefer_huge_pages(data, capacity);
    block->data = data;
    block->capacity = capacity;
    return true;
}

void block_drop(xs_block *block)
{
    if (!count_release(&block->refs)) return;
    xs_manager *manager = block->manager;
    unbook_bytes(manager, block->capacity);
    count_add(&tally_of(manager)->live_blocks, -1);
    if (block->release) block->release(block->owner);
    else if (data_apart(manager)) free(block->data);
    if (block->release || data_apart(manager)) free(block);
    else spare_keep(block);
    manager_unhold(manager);
}

char *block_pin(xs_block *block)
{
    if (!data_apart(block->manager)) return block->data;
    int64_t pins = atomic_load_explicit(&block->pins, memory_order_relaxed);
    for (;;) {
        if (pins == MOVING) { /* lasts for one realloc and one memcpy */
            sched_yield();
            pins = atomic_load_explicit(&block->pins, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(&block->pins, &pins, pins + 1,
                                                         memory_order_acquire,
                                                         memory_order_relaxed)) {
            return block->data;
        }
    }
}

void block_unpin(xs_block *block)
{
    if (data_apart(block->manager))
        atomic_fetch_sub_explicit(&block->pins, 1, memory_order_release);
}

void xs_block_unhold(xs_block *hold)
{
    block_unpin(hold);
    block_drop(hold);
}
