/* Time spent in calls of a manager, measured only in profiled runs.
 *
 * A call takes tens of nanoseconds, so the clock must be cheaper: it is the processor's time stamp
 * counter if there is one. Calls nest, and only the outermost is timed. */
#include <time.h>

#include "internal.h"

static _Thread_local int depth;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t ticks(void)
{
#if defined(__x86_64__)
    return (int64_t)__builtin_ia32_rdtsc();
#else
    return now_ns();
#endif
}

int64_t profile_enter(void) { return depth++ ? -1 : ticks() | 1; }

void profile_leave(xs_manager *manager, int64_t entered)
{
    depth--;
    if (entered == -1) return;
    TALLY_ADD(manager, timed_ticks, ticks() - entered);
    TALLY_ADD(manager, timed_calls, 1);
}

void xs_manager_profile(xs_manager *manager)
{
    enum { TRIES = 1001 };
    int64_t least = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t begin = ticks(), took = ticks() - begin;
        if (took < least) least = took;
    }
    manager->empty_ticks = least;
    manager->began_ns = now_ns();
    manager->began_ticks = ticks();
    manager->ns_per_tick = 0;
    manager->profiled = true;
}

static int64_t ticks_of(const xs_manager *manager, xs_tally *tally)
{
    return count_get(&tally->timed_ticks) - count_get(&tally->timed_calls) * manager->empty_ticks;
}

int64_t profile_ticks(xs_manager *manager) { return ticks_of(manager, tally_of(manager)); }

int64_t profile_ns(xs_manager *manager, int64_t spent)
{
    int64_t passed = ticks() - manager->began_ticks;
    if (!manager->profiled || passed <= 0 || spent <= 0) return 0;
    /* One rate for all: with a rate of its own, each share of an operator could exceed the total. */
    if (manager->ns_per_tick <= 0)
        manager->ns_per_tick = (double)(now_ns() - manager->began_ns) / (double)passed;
    return (int64_t)((double)spent * manager->ns_per_tick);
}

void xs_manager_spent(xs_manager *manager, xs_spent *out)
{
    int64_t calls = 0, spent = 0;
    for (int i = 0; i < TALLIES; i++) {
        calls += count_get(&manager->tally[i].timed_calls);
        spent += ticks_of(manager, &manager->tally[i]);
    }
    *out = (xs_spent){.calls = calls, .ns = profile_ns(manager, spent)};
}
