/* CRC-32 (the one of zlib and of Parquet's pages), with carry-less multiplication where there is one.
 *
 * Method: Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009. Bits are
 * reflected: the lowest bit of a byte comes first. */
#include "pages.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum { SLICES = 8 };
#define POLYNOMIAL 0xEDB88320u

static uint32_t table[SLICES][256];
static _Atomic bool table_made;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) { /* every thread computes the same */
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ POLYNOMIAL : rest >> 1;
        table[0][i] = rest;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (int i = 0; i < 256; i++)
            table[slice][i] = table[slice - 1][i] >> 8 ^ table[0][table[slice - 1][i] & 255];
    atomic_store_explicit(&table_made, true, memory_order_release);
}

static uint32_t by_table(uint32_t crc, const unsigned char *at, int64_t count)
{
    if (!atomic_load_explicit(&table_made, memory_order_acquire)) make_table();
    for (; count >= SLICES; count -= SLICES, at += SLICES) {
        uint32_t next = 0;
        for (int i = 0; i < SLICES; i++) {
            unsigned char byte = i < 4 ? at[i] ^ (unsigned char)(crc >> 8 * i) : at[i];
            next ^= table[SLICES - 1 - i][byte];
        }
        crc = next;
    }
    for (; count; count--) crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANE = 16, LANES = 4 }; /* bytes of a register; registers that are folded at once */

/* Moves a register by as many bits as its two factors stand for, and adds what is there. */
__attribute__((target("sse4.1,pclmul"))) static inline __m128i folded(__m128i moved, __m128i factors,
                                                                      __m128i there)
{
    __m128i low = _mm_clmulepi64_si128(moved, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(moved, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), there);
}

static inline __m128i loaded(const unsigned char *at) { return _mm_loadu_si128((const __m128i *)at); }

/* `count` is a multiple of LANE, and at least LANES of them. */
__attribute__((target("sse4.1,pclmul"))) static uint32_t by_folding(uint32_t crc, const unsigned char *at,
                                                                    int64_t count)
{
    /* Powers of x modulo the polynomial, reflected: by 4 lanes, by one lane, by 8 bytes; for Barrett's
     * reduction the polynomial and its inverse. */
    const __m128i by_four = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_one = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_half = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i reduction = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low_words = _mm_setr_epi32(~0, 0, ~0, 0);

    __m128i lane[LANES];
    for (int i = 0; i < LANES; i++) lane[i] = loaded(at + i * LANE);
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)crc));
    at += LANES * LANE, count -= LANES * LANE;
    for (; count >= LANES * LANE; at += LANES * LANE, count -= LANES * LANE)
        for (int i = 0; i < LANES; i++) lane[i] = folded(lane[i], by_four, loaded(at + i * LANE));
    __m128i rest = lane[0];
    for (int i = 1; i < LANES; i++) rest = folded(rest, by_one, lane[i]);
    for (; count >= LANE; at += LANE, count -= LANE) rest = folded(rest, by_one, loaded(at));

    rest = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, by_one, 0x10));
    __m128i upper = _mm_srli_si128(rest, 4);
    rest = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(rest, low_words), by_half, 0x00), upper);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(rest, low_words), reduction, 0x10);
    __m128i product = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), reduction, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(rest, product), 1);
}
#endif

uint32_t xs_crc32(uint32_t before, const void *bytes, int64_t count)
{
    const unsigned char *at = bytes;
    uint32_t crc = ~before;
#if defined(__x86_64__)
    int64_t whole = count / LANE * LANE;
    if (whole >= LANES * LANE && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
        crc = by_folding(crc, at, whole);
        at += whole, count -= whole;
    }
#endif
    return ~by_table(crc, at, count);
}
