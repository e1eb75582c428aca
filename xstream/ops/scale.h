/* Converts indices of one signal to those of another at the same time: see scale.py. */
#ifndef XS_SCALE_H
#define XS_SCALE_H
#include "../engine/engine.h"
#include "operators.h"

static inline __int128 floor_div(__int128 a, int64_t b)
{
    __int128 quotient = a / b;
    return quotient - (a % b < 0);
}

static inline bool index_fits(__int128 index) { return index >= -INDEX_END && index <= INDEX_END; }

/* The first sample at or after the time of sample `index`; false if it is not a valid index. */
static inline bool scale_index(const xs_scale *scale, int64_t index, int64_t *out)
{
    if (scale->num == scale->den && !scale->rest && !scale->shift) {
        *out = index;
        return true;
    }
    *out = 0;
    if (!index_fits(index)) return false;
    __int128 above = (__int128)scale->num * index + scale->rest;
    __int128 scaled = scale->shift - floor_div(-above, scale->den); /* rounds up */
    if (!index_fits(scaled)) return false;
    *out = (int64_t)scaled;
    return true;
}

/* The last index that scale_index maps to at most `scaled`. */
static inline int64_t scale_back(const xs_scale *scale, int64_t scaled)
{
    __int128 index =
        floor_div(((__int128)scaled - scale->shift) * scale->den - scale->rest, scale->num);
    if (index > INDEX_END) return INDEX_END;
    return index < -INDEX_END ? -INDEX_END : (int64_t)index;
}
#endif
