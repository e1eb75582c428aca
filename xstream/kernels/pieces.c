/* Segments that a kernel walks piece by piece instead of reading them as one array. */
#include "internal.h"

/* Whether the segment has to be walked: its samples are in no single range yet. */
static bool is_listed(const xs_seg *seg)
{
    return seg->spine && seg->width &&
           !atomic_load_explicit(&((xs_seg *)seg)->flat, memory_order_acquire);
}

static int64_t table_words(const xs_seg *seg) { return 2 * seg->pieces + 2; }

bool pieces_reserve(xs_pieces *pieces, const xs_slot *tuple, uint64_t fields)
{
    int64_t words = 0;
    for (; fields; fields &= fields - 1) {
        const xs_seg *seg = tuple[__builtin_ctzll(fields)].seg;
        if (is_listed(seg)) words += table_words(seg);
    }
    pieces->used = 0;
    if (words <= pieces->capacity) return true;
    int64_t *grown = realloc(pieces->words, (size_t)(2 * words) * sizeof *grown);
    if (!grown) return false;
    pieces->words = grown;
    pieces->capacity = 2 * words;
    return true;
}

const int64_t *pieces_table(xs_pieces *pieces, const xs_seg *seg)
{
    if (!is_listed(seg)) return NULL;
    int64_t *table = pieces->words + pieces->used, *word = table + 1;
    xs_walk walk;
    xs_piece piece;
    int64_t width;
    walk_begin(&walk, seg, seg->start, seg_stop(seg));
    while (walk_next(&walk, &piece, &width)) {
        *word++ = piece.start - seg->start;
        *word++ = (int64_t)piece.data;
    }
    table[0] = (word - table) / 2;
    *word++ = seg->width; /* where the last piece ends */
    pieces->used += word - table;
    return table;
}

void pieces_free(xs_pieces *pieces) { free(pieces->words); }
