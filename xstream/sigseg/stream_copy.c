/* Copies more than fits into the caches, piece by piece, as fast as one memcpy of the whole.
 *
 * The C library bypasses the caches only in large copies. In pieces of a few kilobytes, each cache
 * line of the target is first read and later evicted, which costs a third of the bandwidth or more.
 * Without streaming stores this is memcpy. */
#include "internal.h"

#ifdef __SSE2__
#include <emmintrin.h>

enum { LINE = 64, AHEAD = 32 * LINE };

void copy_streaming(char *restrict to, const char *restrict from, size_t bytes)
{
    size_t ragged = -(uintptr_t)to & (LINE - 1);
    if (bytes < 4 * LINE + ragged) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, ragged);
    to += ragged, from += ragged, bytes -= ragged;
    for (; bytes >= LINE; to += LINE, from += LINE, bytes -= LINE) {
        _mm_prefetch(from + AHEAD, _MM_HINT_T0);
        const __m128i *in = (const __m128i *)from;
        __m128i *out = (__m128i *)to;
        __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    memcpy(to, from, bytes);
}

/* Streaming stores are not ordered with others: needed before the copy is published. */
void copy_streaming_end(void) { _mm_sfence(); }

#else
void copy_streaming(char *restrict to, const char *restrict from, size_t bytes)
{
    memcpy(to, from, bytes);
}
void copy_streaming_end(void) {}
#endif
