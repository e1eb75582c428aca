/* The blocks of managers. */
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

/* A loop that reads at one address and writes at another is slowed down by half where the low twelve
 * bits of the second are just behind the first's: the processor takes the coming load for one of what was
 * just stored. Larger blocks therefore have some room to place their data away from what it is made of. */
enum { ROOM = 1536, ROOM_MIN = 4096 };

static size_t room_in(int64_t capacity) { return capacity >= ROOM_MIN ? ROOM : 0; }

static char *placed(xs_block *block, int64_t capacity, const void *beside)
{
    char *data = aligned_after(block, sizeof *block);
    if (!beside || capacity < ROOM_MIN) return data;
    /* By the distance of the low bits in steps of 512: 512 to 3071 is as fast as it gets. */
    static const int16_t away[8] = {1024, 512, 0, 0, 0, 0, 1536, 1536};
    return data + away[((uintptr_t)data - (uintptr_t)beside) >> 9 & 7];
}

/* A header with room for the data behind it, or with data of its own; NULL without memory. */
static xs_block *block_memory(bool apart, int64_t capacity, const void *beside, char **data)
{
    xs_block *block = apart ? NULL : spare_block_take(capacity);
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
    TALLY_ADD(manager, live_blocks, 1);
    TALLY_ADD(manager, allocations, 1);
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
    TALLY_ADD(manager, live_blocks, 1);
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
    TALLY_ADD(manager, reallocations, 1);
    if ((uintptr_t)data != before) TALLY_ADD(manager, moved_reallocations, 1);
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
    TALLY_ADD(manager, live_blocks, -1);
    if (block->release) block->release(block->owner);
    else if (data_apart(manager)) free(block->data);
    if (block->release || data_apart(manager)) free(block);
    else spare_block_keep(block);
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

void xs_block_unhold_data(xs_block *hold, void *data)
{
    (void)data;
    xs_block_unhold(hold);
}
