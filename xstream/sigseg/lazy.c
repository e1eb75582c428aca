/* refcount-lazy: a segment is a list of counted ranges, and append splices (section III.B, Fig. 5).
 *
 * Lists are values: `c = a + b` must not change `a`, and appending to an accumulator must cost the
 * same for the millionth piece as for the first. Pieces are therefore stored in reference-counted
 * chunks that lists share. A segment reads a chunk up to its own end. Appending to the segment that
 * ends where the chunk ends takes the next free slots by compare-and-swap; segments that existed
 * before do not read them. Appending to any other segment branches: it makes a new chunk, and a new
 * spine that shares the old chunks.
 *
 * Chunk capacities double, so a spine has O(log pieces) runs; a lookup walks the runs and bisects
 * one. A new chunk is never larger than the segment, so trimming the front of a growing accumulator
 * frees the early chunks. Freeing does not recurse: a spine frees chunks, and a chunk drops blocks.
 */
#include "internal.h"

enum {
    CHUNK_MIN = 8, /* pieces; a subseg copies lists up to this length instead of sharing */
    HIDDEN_MAX = 64, /* hidden pieces that a growing list may keep alive, besides twice its own */
};

static void chunk_drop(xs_chunk *chunk)
{
    if (!count_release(&chunk->refs)) return;
    int64_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
    for (int64_t i = 0; i < used; i++)
        if (chunk->pieces[i].block) block_drop(chunk->pieces[i].block); /* NULL: see spine_trim */
    free(chunk);
}

static xs_chunk *chunk_new(int64_t used, int64_t capacity)
{
    xs_chunk *chunk = malloc(sizeof *chunk + (size_t)capacity * sizeof(xs_piece));
    if (!chunk) return NULL;
    *chunk = (xs_chunk){.capacity = capacity};
    count_add(&chunk->refs, 1);
    atomic_store_explicit(&chunk->used, used, memory_order_relaxed);
    return chunk;
}

void spine_drop(xs_spine *spine)
{
    if (!count_release(&spine->refs)) return;
    for (int64_t i = 0; i < spine->runs; i++) chunk_drop(spine->run[i].chunk);
    free(spine);
}

static xs_spine *spine_new(int64_t runs)
{
    xs_spine *spine = malloc(sizeof *spine + (size_t)runs * sizeof(xs_run));
    if (!spine) return NULL;
    *spine = (xs_spine){.runs = runs};
    count_add(&spine->refs, 1);
    return spine;
}

/* Run number i, clipped to this segment. */
static xs_run seen(const xs_seg *seg, int64_t i)
{
    xs_run run = seg->spine->run[i];
    if (i == 0) run.first = seg->head;
    if (i == seg->spine->runs - 1) run.end = seg->tail;
    return run;
}

/* Takes over the count on `spine`. */
static xs_seg *seg_of_spine(const xs_seg *like, int64_t start, int64_t width, xs_spine *spine,
                            int64_t pieces)
{
    xs_seg *seg = seg_of_block(like->manager, start, width, like->itemsize, NULL, 0);
    if (!seg) {
        spine_drop(spine);
        return NULL;
    }
    seg->spine = spine;
    seg->head = spine->run[0].first;
    seg->tail = spine->run[spine->runs - 1].end;
    seg->pieces = pieces;
    return seg;
}

/* Finds the run and the position of the last piece that starts at or before `index`. */
static void locate(const xs_seg *seg, int64_t index, int64_t *run_out, int64_t *position_out)
{
    int64_t r = seg->spine->runs - 1;
    xs_run run = seen(seg, r);
    while (r > 0 && run.chunk->pieces[run.first].start > index) run = seen(seg, --r);
    int64_t low = run.first, high = run.end; /* low starts at or before index; high does not */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (run.chunk->pieces[middle].start <= index) low = middle;
        else high = middle;
    }
    *run_out = r;
    *position_out = low;
}

void walk_begin(xs_walk *walk, const xs_seg *seg, int64_t start, int64_t stop)
{
    *walk = (xs_walk){.seg = seg, .next = start, .stop = stop};
    if (seg->spine) locate(seg, start, &walk->run, &walk->position);
}

bool walk_next(xs_walk *walk, xs_piece *piece, int64_t *width)
{
    const xs_seg *seg = walk->seg;
    int64_t start = walk->next, stop = walk->stop;
    if (start >= stop) return false;
    if (!seg->spine) {
        char *data = seg->block->data + seg->offset + (start - seg->start) * seg->itemsize;
        *piece = (xs_piece){seg->block, data, start};
    } else {
        xs_run run = seen(seg, walk->run);
        *piece = run.chunk->pieces[walk->position++];
        if (walk->position == run.end && walk->run + 1 < seg->spine->runs) {
            run = seen(seg, ++walk->run);
            walk->position = run.first;
        }
        if (walk->position < run.end && run.chunk->pieces[walk->position].start < stop)
            stop = run.chunk->pieces[walk->position].start;
        piece->data += (start - piece->start) * seg->itemsize;
        piece->start = start;
    }
    *width = stop - start;
    walk->next = stop;
    return true;
}

int64_t spine_find_piece(const xs_seg *seg, int64_t number, xs_piece *piece)
{
    xs_walk walk = {.seg = seg, .next = seg->start, .stop = seg_stop(seg)};
    xs_run run = seen(seg, 0);
    while (number >= run.end - run.first) {
        number -= run.end - run.first;
        run = seen(seg, ++walk.run);
    }
    walk.position = run.first + number;
    int64_t start = run.chunk->pieces[walk.position].start;
    if (start > seg->start) walk.next = start;
    int64_t width;
    walk_next(&walk, piece, &width);
    return width;
}

/* Writes the remaining pieces of `walk`, each with a count on its block. */
static void pieces_copy(xs_walk *walk, xs_piece *out)
{
    xs_piece piece;
    int64_t width;
    while (walk_next(walk, &piece, &width)) {
        block_ref(piece.block);
        *out++ = piece;
    }
}

/* The pieces of one run, with counts; those of a segment's first run keep their own start. */
static void run_copy(const xs_run *run, xs_piece *out)
{
    for (int64_t i = run->first; i < run->end; i++) {
        *out = run->chunk->pieces[i];
        block_ref((out++)->block);
    }
}

/* Whether the segment is a cut of a list that keeps much more memory alive than it uses. */
static bool mostly_hidden(const xs_seg *seg)
{
    xs_chunk *last = seg->spine->run[seg->spine->runs - 1].chunk;
    int64_t behind = atomic_load_explicit(&last->used, memory_order_relaxed) - seg->tail;
    return seg->head + behind > 2 * seg->pieces + HIDDEN_MAX;
}

static int64_t most_runs(int64_t pieces) { return 8 + 2 * (64 - __builtin_clzll((uint64_t)pieces)); }

/* The number of trailing runs of `a` that a new chunk absorbs, and its capacity. */
static int64_t plan_chunk(const xs_seg *a, int64_t added, bool full, int64_t *capacity, int64_t *taken)
{
    int64_t runs = a->spine->runs;
    xs_chunk *last = a->spine->run[runs - 1].chunk;
    *taken = added;
    *capacity = full ? 2 * last->capacity : CHUNK_MIN;
    if (*capacity > a->pieces) *capacity = a->pieces;
    bool rebuilt = mostly_hidden(a);
    bool too_many = runs >= most_runs(a->pieces);
    while (runs > 0 && (rebuilt || too_many)) {
        xs_run run = seen(a, runs - 1);
        *taken += run.end - run.first;
        runs--;
        /* Merging stops when the next run is at least twice as long as the merged one. */
        too_many = runs > 0 && seen(a, runs - 1).end - seen(a, runs - 1).first < 2 * *taken;
    }
    if (*capacity < 2 * *taken) *capacity = 2 * *taken;
    if (*capacity < CHUNK_MIN) *capacity = CHUNK_MIN;
    return runs;
}

/* A new spine: the runs of `a` that stay, then a chunk with the rest of `a` and the rest of `walk`. */
static xs_seg *append_in_new_chunk(xs_seg *a, xs_walk *walk, int64_t added, int64_t stop, bool full)
{
    int64_t capacity, taken, keep = plan_chunk(a, added, full, &capacity, &taken);
    xs_chunk *chunk = chunk_new(taken, capacity);
    if (!chunk) return NULL;
    xs_spine *spine = spine_new(keep + 1);
    if (!spine) {
        free(chunk);
        return NULL;
    }
    for (int64_t i = 0; i < keep; i++) {
        spine->run[i] = seen(a, i);
        count_add(&spine->run[i].chunk->refs, 1);
    }
    xs_piece *out = chunk->pieces;
    for (int64_t i = keep; i < a->spine->runs; i++) {
        xs_run run = seen(a, i);
        run_copy(&run, out);
        out += run.end - run.first;
    }
    pieces_copy(walk, out);
    spine->run[keep] = (xs_run){chunk, 0, taken};
    return seg_of_spine(a, a->start, stop - a->start, spine, a->pieces + added);
}

/* Takes the slots after `a` in its last chunk; NULL if they are not free. */
static xs_seg *append_in_place(xs_seg *a, xs_walk *walk, int64_t added, int64_t stop, bool *full)
{
    xs_chunk *chunk = a->spine->run[a->spine->runs - 1].chunk;
    int64_t tail = a->tail;
    *full = false;
    if (mostly_hidden(a)) return NULL;
    if (tail + added > chunk->capacity) {
        *full = atomic_load_explicit(&chunk->used, memory_order_relaxed) == tail;
        return NULL;
    }
    xs_seg *grown = seg_widened(a, stop - a->start);
    if (!grown) return NULL;
    if (!atomic_compare_exchange_strong_explicit(&chunk->used, &tail, tail + added,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        xs_seg_drop(grown);
        return NULL;
    }
    pieces_copy(walk, chunk->pieces + a->tail);
    grown->tail = a->tail + added;
    grown->pieces = a->pieces + added;
    return grown;
}

/* The first list: one chunk with the one range of `a` and the rest of `walk`. */
static xs_seg *append_to_range(xs_seg *a, xs_walk *walk, int64_t added, int64_t stop)
{
    int64_t capacity = 2 * (added + 1) > CHUNK_MIN ? 2 * (added + 1) : CHUNK_MIN;
    xs_chunk *chunk = chunk_new(added + 1, capacity);
    xs_spine *spine = chunk ? spine_new(1) : NULL;
    if (!spine) {
        free(chunk);
        return NULL;
    }
    chunk->pieces[0] = (xs_piece){block_ref(a->block), a->block->data + a->offset, a->start};
    pieces_copy(walk, chunk->pieces + 1);
    spine->run[0] = (xs_run){chunk, 0, added + 1};
    return seg_of_spine(a, a->start, stop - a->start, spine, added + 1);
}

static char *end_of(const xs_seg *seg, xs_block **block)
{
    if (seg->block) {
        *block = seg->block;
        return seg->block->data + seg->offset + seg_bytes(seg);
    }
    xs_piece last = seg->spine->run[seg->spine->runs - 1].chunk->pieces[seg->tail - 1];
    *block = last.block;
    return last.data + (seg_stop(seg) - last.start) * seg->itemsize;
}

static xs_seg *append_lazily(xs_seg *a, xs_seg *b)
{
    if (!a->width) return xs_seg_ref(b);
    if (!b->width) return xs_seg_ref(a);
    xs_walk walk, ahead;
    xs_piece first;
    xs_block *last;
    int64_t width, added = b->pieces, stop = seg_stop(b);
    walk_begin(&walk, b, b->start, stop);
    ahead = walk;
    walk_next(&ahead, &first, &width);
    char *end = end_of(a, &last);
    if (first.block == last && first.data == end) { /* `b` follows `a` in memory already */
        walk = ahead;
        if (--added == 0) return seg_widened(a, stop - a->start);
        /* The last piece is widened: it already ends where the next one starts. */
    }
    if (!a->spine) return append_to_range(a, &walk, added, stop);
    bool full;
    xs_seg *grown = append_in_place(a, &walk, added, stop, &full);
    return grown ? grown : append_in_new_chunk(a, &walk, added, stop, full);
}

/* A short cut gets its own chunk, so that it does not keep a long list alive. */
static xs_seg *subseg_copied(xs_seg *seg, int64_t start, int64_t width, int64_t pieces)
{
    xs_walk walk;
    walk_begin(&walk, seg, start, start + width);
    if (pieces == 1) {
        xs_piece piece;
        int64_t samples;
        walk_next(&walk, &piece, &samples);
        return seg_of_block(seg->manager, start, width, seg->itemsize, block_ref(piece.block),
                            piece.data - piece.block->data);
    }
    xs_chunk *chunk = chunk_new(pieces, CHUNK_MIN);
    xs_spine *spine = chunk ? spine_new(1) : NULL;
    if (!spine) {
        free(chunk);
        return NULL;
    }
    pieces_copy(&walk, chunk->pieces);
    spine->run[0] = (xs_run){chunk, 0, pieces};
    return seg_of_spine(seg, start, width, spine, pieces);
}

static xs_seg *subseg_lazily(xs_seg *seg, int64_t start, int64_t width)
{
    if (!width) return seg_of_block(seg->manager, start, 0, seg->itemsize, NULL, 0);
    xs_block *flat = seg->block ? seg->block : atomic_load_explicit(&seg->flat, memory_order_acquire);
    if (flat) {
        int64_t offset = (seg->block ? seg->offset : 0) + (start - seg->start) * seg->itemsize;
        return seg_of_block(seg->manager, start, width, seg->itemsize, block_ref(flat), offset);
    }
    int64_t first_run, first, last_run, last, pieces = 0;
    locate(seg, start, &first_run, &first);
    locate(seg, start + width - 1, &last_run, &last);
    for (int64_t i = first_run; i <= last_run; i++) {
        xs_run run = seen(seg, i);
        pieces += (i == last_run ? last + 1 : run.end) - (i == first_run ? first : run.first);
    }
    if (pieces <= CHUNK_MIN) return subseg_copied(seg, start, width, pieces);
    xs_spine *spine = seg->spine;
    int64_t runs = last_run - first_run + 1;
    if (runs == spine->runs) {
        count_add(&spine->refs, 1);
    } else {
        spine = spine_new(runs);
        if (!spine) return NULL;
        for (int64_t i = 0; i < runs; i++) {
            spine->run[i] = seen(seg, first_run + i);
            count_add(&spine->run[i].chunk->refs, 1);
        }
    }
    xs_seg *cut = seg_of_spine(seg, start, width, spine, pieces);
    if (cut) {
        cut->head = first;
        cut->tail = last + 1;
    }
    return cut;
}

/* Gives back the blocks of pieces that nobody can see any more. */
static void pieces_release(xs_chunk *chunk, int64_t first, int64_t end)
{
    if (!count_is_one(&chunk->refs)) return;
    for (int64_t i = first; i < end; i++) {
        block_drop(chunk->pieces[i].block);
        chunk->pieces[i].block = NULL;
    }
}

bool spine_trim(xs_seg *seg, int64_t start)
{
    xs_spine *spine = seg->spine;
    if (!count_is_one(&seg->refs) || !count_is_one(&spine->refs)) return false;
    int64_t first_run, first, hidden = 0;
    locate(seg, start, &first_run, &first);
    for (int64_t i = 0; i < first_run; i++) {
        xs_run run = seen(seg, i);
        hidden += run.end - run.first;
        chunk_drop(run.chunk);
    }
    xs_run run = seen(seg, first_run);
    pieces_release(run.chunk, run.first, first);
    spine->runs -= first_run;
    memmove(spine->run, spine->run + first_run, (size_t)spine->runs * sizeof *spine->run);
    spine->run[0].first = seg->head = first;
    seg->pieces -= hidden + first - run.first;
    seg->width -= start - seg->start;
    seg->start = start;
    xs_block *flat = atomic_exchange_explicit(&seg->flat, NULL, memory_order_acq_rel);
    if (flat) block_drop(flat);
    return true;
}

static xs_seg *share_lazily(xs_seg *seg) { return xs_seg_ref(seg); }

const xs_kind_table xs_refcount_lazy = {share_lazily, append_lazily, subseg_lazily};
