/* Four threads share, append (in place and branching), cut, materialise, hold and drop the same
 * segments, under each manager in turn, without a lock. Sample i of the signal is i and, above
 * that, a tag of who made it, so every segment can be checked wherever it comes from, and two
 * branches show it when one writes over the other. Exits with 1 where a sample is wrong or where
 * something is still alive at the end.
 *
 *     stress [rounds]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "sigseg.h"

enum { THREADS = 4, COMMON = 200, LISTS = 8, ENDS = 500, BOXES = 8, SEASONS = 20 };
enum { WIDTH = 4, WIDEST = 3000 };
enum { TAG_BITS = 10, INDEX_MASK = (1 << 21) - 1 };

static xs_seg *common[COMMON];           /* neighbours; every thread uses all of them at once */
static xs_seg *lists[LISTS];             /* all of them appended, up to some point */
static xs_seg *ends[ENDS];               /* short lists whose ends are all still free */
static _Atomic(xs_seg *) mailbox[BOXES]; /* whoever takes a segment out owns that count */
static pthread_barrier_t all_ready;
static atomic_int failures;
static long rounds = 20000;

static void expect(int holds, const char *what)
{
    if (!holds && atomic_fetch_add(&failures, 1) < 10) fprintf(stderr, "wrong: %s\n", what);
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static xs_seg *made(xs_manager *manager, int64_t start, int64_t width, uint64_t tag)
{
    int32_t above = (int32_t)(tag % (1 << TAG_BITS)) << 21;
    xs_seg *seg = xs_seg_new(manager, start, width, sizeof(int32_t));
    int32_t *samples = xs_seg_own_data(seg);
    for (int64_t i = 0; i < width; i++) samples[i] = above | (int32_t)(start + i);
    return seg;
}

static int32_t sample_at(xs_seg *seg, int64_t index)
{
    int32_t sample;
    xs_seg_read(seg, index, 1, &sample);
    return sample;
}

static void check_sample(xs_seg *seg, uint64_t random)
{
    int64_t index = xs_seg_start(seg) + (int64_t)(random % (uint64_t)xs_seg_width(seg));
    expect((sample_at(seg, index) & INDEX_MASK) == index, "a sample read alone");
}

/* Looks at all samples in one range for a while, as an exported array does. */
static void check_whole(xs_seg *seg)
{
    xs_block *hold;
    const int32_t *samples = xs_seg_hold(seg, &hold);
    int64_t wrong = 0, start = xs_seg_start(seg);
    for (int64_t i = 0; i < xs_seg_width(seg); i++) wrong += (samples[i] & INDEX_MASK) != start + i;
    expect(!wrong, "a sample of a materialised segment");
    xs_block_unhold(hold);
}

static void check_pieces(xs_seg *seg)
{
    int64_t at = xs_seg_start(seg), width;
    for (int64_t piece = 0; piece < xs_seg_pieces(seg); piece++) {
        xs_block *hold;
        const int32_t *samples = xs_seg_hold_piece(seg, piece, &width, &hold);
        expect((samples[0] & INDEX_MASK) == at, "the beginning of a piece");
        expect((samples[width - 1] & INDEX_MASK) == at + width - 1, "the end of a piece");
        at += width;
        xs_block_unhold(hold);
    }
    expect(at == xs_seg_start(seg) + xs_seg_width(seg), "the width of the pieces together");
}

static xs_seg *replaced(xs_seg *old, xs_seg *fresh)
{
    xs_seg_drop(old);
    return fresh;
}

static int64_t stop_of(const xs_seg *seg) { return xs_seg_start(seg) + xs_seg_width(seg); }

/* `seg` and its continuation by some of the common segments, or by a new one. */
static xs_seg *grown(xs_manager *manager, xs_seg *seg, uint64_t random)
{
    int64_t stop = stop_of(seg);
    for (uint64_t more = random % 4; more && stop < COMMON * WIDTH && stop % WIDTH == 0; more--) {
        seg = replaced(seg, xs_seg_append(seg, common[stop / WIDTH]));
        stop += WIDTH;
    }
    xs_seg *fresh = made(manager, stop, 1 + (int64_t)((random >> 8) % WIDTH), random >> 20);
    seg = replaced(seg, xs_seg_append(seg, fresh));
    xs_seg_drop(fresh);
    return seg;
}

static xs_seg *cut(xs_seg *seg, uint64_t random)
{
    int64_t width = xs_seg_width(seg), first = (int64_t)(random % (uint64_t)width);
    int64_t keep = 1 + (int64_t)((random >> 32) % (uint64_t)(width - first));
    return replaced(seg, xs_seg_subseg(seg, xs_seg_start(seg) + first, keep));
}

/* Two continuations of one segment: neither may show what the other got. */
static void check_branches(xs_manager *manager, xs_seg *seg)
{
    xs_seg *one = made(manager, stop_of(seg), WIDTH, 1), *two = made(manager, stop_of(seg), WIDTH, 2);
    xs_seg *left = xs_seg_append(seg, one), *right = xs_seg_append(seg, two);
    expect(sample_at(left, stop_of(seg)) >> 21 == 1, "a branch that was there before");
    expect(sample_at(right, stop_of(seg)) >> 21 == 2, "a branch that came later");
    xs_seg_drop(one), xs_seg_drop(two), xs_seg_drop(left), xs_seg_drop(right);
}

static xs_seg *chosen(_Atomic(xs_seg *) *box, uint64_t random)
{
    xs_seg *seg = random % 4 ? atomic_exchange(box, NULL) : NULL;
    if (seg) return seg;
    if ((random >> 2) % 2) return xs_seg_share(common[(random >> 16) % COMMON]);
    return xs_seg_share(lists[(random >> 16) % LISTS]);
}

static void work_on(xs_manager *manager, uint64_t *state)
{
    _Atomic(xs_seg *) *box = &mailbox[draw(state) % BOXES];
    xs_seg *seg = chosen(box, draw(state));
    for (int step = 0; step < 4; step++) {
        switch (draw(state) % 9) {
        case 0: case 1: case 2: seg = grown(manager, seg, draw(state)); break;
        case 7: check_branches(manager, seg); break;
        case 3: seg = cut(seg, draw(state)); break;
        case 4: seg = replaced(seg, xs_seg_share(seg)); break;
        case 5: check_whole(seg); break;
        case 6: check_pieces(seg); break;
        default: check_sample(seg, draw(state)); break;
        }
    }
    if (draw(state) % 16 == 0) {
        xs_seg *copy = xs_seg_edit(seg);
        expect(xs_seg_is_own(copy), "a private copy that somebody else holds");
        check_whole(copy);
        xs_seg_drop(copy);
    }
    if (stop_of(seg) > WIDEST) seg = replaced(seg, xs_seg_share(lists[draw(state) % LISTS]));
    /* Leave one count in the box, and go on with another: both threads then grow the same end. */
    xs_seg *left = atomic_exchange(box, xs_seg_ref(seg));
    if (left) xs_seg_drop(left);
    seg = grown(manager, seg, draw(state));
    check_sample(seg, draw(state));
    xs_seg_drop(seg);
}

static void *worker(void *argument)
{
    xs_manager *manager = argument;
    static atomic_ullong seeds = 1;
    uint64_t state = 0x9E3779B97F4A7C15ull * atomic_fetch_add(&seeds, 1);
    pthread_barrier_wait(&all_ready);
    /* All at once for the same ends, which only one may have. */
    for (int k = 0; k < ENDS; k++) {
        check_branches(manager, ends[k]);
        check_whole(ends[k]);
    }
    for (long round = 0; round < rounds / SEASONS; round++) work_on(manager, &state);
    return NULL;
}

/* Fresh segments each time: a list is made contiguous only once. */
static void season(xs_manager *manager)
{
    for (int i = 0; i < COMMON; i++) common[i] = made(manager, i * WIDTH, WIDTH, 0);
    for (int k = 0; k < LISTS; k++) {
        lists[k] = xs_seg_ref(common[0]);
        for (int i = 1; i < COMMON - 20 * k; i++)
            lists[k] = replaced(lists[k], xs_seg_append(lists[k], common[i]));
    }
    for (int k = 0; k < ENDS; k++) ends[k] = xs_seg_append(common[0], common[1]);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, manager);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < BOXES; i++) {
        xs_seg *left = atomic_exchange(&mailbox[i], NULL);
        if (left) xs_seg_drop(left);
    }
    for (int i = 0; i < COMMON; i++) xs_seg_drop(common[i]);
    for (int k = 0; k < LISTS; k++) xs_seg_drop(lists[k]);
    for (int k = 0; k < ENDS; k++) xs_seg_drop(ends[k]);
}

static void stress(xs_kind kind, const char *name)
{
    xs_manager *manager = xs_manager_new(kind, INT64_MAX);
    for (int i = 0; i < SEASONS; i++) season(manager);
    xs_counters now;
    xs_manager_counters(manager, &now);
    printf("%-17s %9lld appends, %8lld materialisations, %7lld pinned copies; alive at the end: "
           "%lld segments, %lld blocks, %lld bytes\n",
           name, (long long)now.appends, (long long)now.materialisations,
           (long long)now.pinned_copies, (long long)now.live_segments, (long long)now.live_blocks,
           (long long)now.live_bytes);
    expect(!now.live_segments && !now.live_blocks && !now.live_bytes, "something is still alive");
    xs_manager_drop(manager);
}

int main(int argc, char **argv)
{
    if (argc > 1) rounds = atol(argv[1]);
    pthread_barrier_init(&all_ready, NULL, THREADS);
    stress(XS_COPY_ALWAYS, "copy-always");
    stress(XS_REFCOUNT_COPY, "refcount-copy");
    stress(XS_REFCOUNT_REALLOC, "refcount-realloc");
    stress(XS_REFCOUNT_LAZY, "refcount-lazy");
    pthread_barrier_destroy(&all_ready);
    return atomic_load(&failures) ? 1 : 0;
}
