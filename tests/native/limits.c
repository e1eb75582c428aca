/* Segments whose size in bytes would overflow: appending refuses them before any sample is read.
 *
 * The samples are a fake address: a list of shared ranges copies nothing. */
#include <stdio.h>

#include "../../xstream/sigseg/internal.h"

static int released;
static void release(void *owner) { released += *(int *)owner; }

int main(void)
{
    enum { ITEM = 8 };
    int one = 1, made = 0;
    const int64_t width = (int64_t)1 << 54; /* 2**57 bytes; 16 of them are 2**61 */
    xs_manager *manager = xs_manager_new(XS_REFCOUNT_LAZY, INT64_MAX);
    xs_seg *all = xs_seg_new(manager, 0, 0, ITEM);
    for (int i = 0; i < 64; i++) {
        xs_seg *next = xs_seg_foreign(manager, i * width, width, ITEM, (char *)64, 0, release, &one);
        xs_seg *grown = xs_seg_append(all, next);
        xs_seg_drop(next);
        if (!grown) break;
        xs_seg_drop(all);
        all = grown;
        made++;
    }
    xs_counters counters;
    xs_manager_counters(manager, &counters);
    printf("%d segments of 2**57 bytes, %lld alive\n", made, (long long)counters.live_segments);
    bool wide = xs_seg_foreign(manager, 0, (int64_t)1 << 61, ITEM, (char *)64, 0, release, &one);
    xs_seg_drop(all);
    xs_manager_counters(manager, &counters);
    bool clean = counters.live_segments == 0 && counters.live_blocks == 0 && released == made + 2;
    xs_manager_drop(manager);
    return made == 15 && !wide && clean ? 0 : 1;
}
