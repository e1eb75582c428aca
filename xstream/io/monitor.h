/* A lock and a condition variable: waits have a time limit and do not spin. */
#ifndef XS_IO_MONITOR_H
#define XS_IO_MONITOR_H
#include <pthread.h>
#include <time.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} xs_monitor;

static inline void monitor_init(xs_monitor *monitor)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&monitor->lock, NULL);
    pthread_cond_init(&monitor->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static inline void monitor_destroy(xs_monitor *monitor)
{
    pthread_cond_destroy(&monitor->changed);
    pthread_mutex_destroy(&monitor->lock);
}

static inline void monitor_lock(xs_monitor *monitor) { pthread_mutex_lock(&monitor->lock); }
static inline void monitor_unlock(xs_monitor *monitor) { pthread_mutex_unlock(&monitor->lock); }
static inline void monitor_tell(xs_monitor *monitor) { pthread_cond_broadcast(&monitor->changed); }

/* Waits for a signal or until the time is over; the lock is held before and after. */
static inline void monitor_wait(xs_monitor *monitor, int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec += ns % 1000000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&monitor->changed, &monitor->lock, &until);
}
#endif
