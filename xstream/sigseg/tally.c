/* Managers and their counters.
 *
 * A manager is freed when its `refs` in the first tally reach zero. The refs in a tally that belongs to
 * a thread are added there when it is returned; until then HELD keeps them above zero. */
#include "internal.h"

enum { SLACK_BYTES = 1 << 16 }; /* that a thread with its own tally uses before they are booked */
#define HELD ((int64_t)1 << 40)

_Thread_local xs_own_tally own_tally;

static const xs_kind_table *const tables[] = {
    [XS_COPY_ALWAYS] = &xs_copy_always,
    [XS_REFCOUNT_COPY] = &xs_refcount_copy,
    [XS_REFCOUNT_REALLOC] = &xs_refcount_realloc,
    [XS_REFCOUNT_LAZY] = &xs_refcount_lazy,
};

xs_manager *xs_manager_new(xs_kind kind, int64_t limit_bytes)
{
    size_t size = (sizeof(xs_manager) + 63) / 64 * 64;
    xs_manager *manager = aligned_alloc(64, size);
    if (!manager) return NULL;
    memset(manager, 0, size);
    manager->table = tables[kind];
    manager->kind = kind;
    manager->limit_bytes = limit_bytes;
    pthread_mutex_init(&manager->folding, NULL);
    count_add(&manager->tally[0].refs, 1);
    return manager;
}

void xs_manager_drop(xs_manager *manager)
{
    if (!count_release(&manager->tally[0].refs)) return;
    pthread_mutex_destroy(&manager->folding);
    free(manager);
}

/* -- tallies of threads -------------------------------------------------------------------- */

xs_own_tally tally_take(xs_manager *manager)
{
    xs_own_tally before = own_tally;
    if (before.manager == manager) return before;
    pthread_mutex_lock(&manager->folding);
    int number = __builtin_ctz(~(manager->taken | 1)); /* the first one is the shared one */
    if (number < TALLIES) {
        manager->taken |= 1u << number;
        count_add(&manager->tally[0].refs, HELD);
        own_tally = (xs_own_tally){manager, &manager->tally[number]};
    } else {
        own_tally = (xs_own_tally){NULL, NULL};
    }
    pthread_mutex_unlock(&manager->folding);
    return before;
}

/* Empties a count of this thread's tally. */
static int64_t taken(xs_count *count)
{
    int64_t value = count_get(count);
    count_add_own(count, -value);
    return value;
}

/* The manager outlives this: whoever runs a plan has a count on it. */
void tally_return(xs_own_tally before)
{
    xs_manager *manager = own_tally.manager;
    if (manager && manager != before.manager) {
        xs_tally *tally = own_tally.tally;
        pthread_mutex_lock(&manager->folding);
        count_add(&manager->live_bytes, taken(&tally->unbooked));
        count_add(&manager->tally[0].refs, taken(&tally->refs) - HELD);
        manager->taken &= ~(1u << (tally - manager->tally));
        pthread_mutex_unlock(&manager->folding);
    }
    own_tally = before;
}

/* -- bytes --------------------------------------------------------------------------------- */

/* Limits are exact, so they need every byte booked at once. */
static bool counts_apart(const xs_manager *manager)
{
    return manager == own_tally.manager && manager->limit_bytes == INT64_MAX;
}

static void book_apart(xs_manager *manager, int64_t bytes)
{
    xs_count *unbooked = &own_tally.tally->unbooked;
    count_add_own(unbooked, bytes);
    int64_t sum = count_get(unbooked);
    if (sum > SLACK_BYTES || sum < -SLACK_BYTES) count_add(&manager->live_bytes, taken(unbooked));
}

/* The peak counts memory that exists, not memory that was asked for. What other threads have not booked
 * yet is missing. */
void note_peak(xs_manager *manager)
{
    int64_t live = count_get(&manager->live_bytes), peak = count_get(&manager->peak_bytes);
    if (manager == own_tally.manager) live += count_get(&own_tally.tally->unbooked);
    while (live > peak && !count_swap(&manager->peak_bytes, &peak, live))
        ;
}

/* A request that is refused is never visible in live_bytes, where it would make other threads' requests
 * fail. */
bool book_bytes(xs_manager *manager, int64_t bytes)
{
    if (counts_apart(manager)) {
        book_apart(manager, bytes);
        return true;
    }
    int64_t live = count_get(&manager->live_bytes);
    do
        if (bytes > manager->limit_bytes - live) return false;
    while (!count_swap(&manager->live_bytes, &live, live + bytes));
    return true;
}

void unbook_bytes(xs_manager *manager, int64_t bytes)
{
    if (counts_apart(manager)) book_apart(manager, -bytes);
    else count_add(&manager->live_bytes, -bytes);
}

/* -- reading ------------------------------------------------------------------------------- */

void xs_manager_counters(xs_manager *manager, xs_counters *out)
{
    pthread_mutex_lock(&manager->folding);
    int64_t refs = -HELD * __builtin_popcount(manager->taken);
    *out = (xs_counters){.live_bytes = count_get(&manager->live_bytes)};
    for (int i = 0; i < TALLIES; i++) {
        xs_tally *tally = &manager->tally[i];
        refs += count_get(&tally->refs);
        out->live_blocks += count_get(&tally->live_blocks);
        out->live_bytes += count_get(&tally->unbooked);
        out->allocations += count_get(&tally->allocations);
        out->reallocations += count_get(&tally->reallocations);
        out->moved_reallocations += count_get(&tally->moved_reallocations);
        out->pinned_copies += count_get(&tally->pinned_copies);
        out->shares += count_get(&tally->shares);
        out->appends += count_get(&tally->appends);
        out->subsegs += count_get(&tally->subsegs);
        out->materialisations += count_get(&tally->materialisations);
        out->edits += count_get(&tally->edits);
        for (int why = 0; why < XS_REASONS; why++)
            out->bytes_copied[why] += count_get(&tally->bytes_copied[why]);
    }
    pthread_mutex_unlock(&manager->folding);
    out->live_segments = refs - out->live_blocks - 1;
    int64_t peak = count_get(&manager->peak_bytes);
    out->peak_bytes = peak > out->live_bytes ? peak : out->live_bytes;
}

void copied(xs_manager *manager, xs_reason why, int64_t bytes)
{
    TALLY_ADD(manager, bytes_copied[why], bytes);
}
