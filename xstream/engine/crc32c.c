/* CRC32C (Castagnoli), with the processor's instruction where there is one. */
#include "image.h"

#include <stdbool.h>
#include <string.h>

static uint32_t by_table(uint32_t crc, const unsigned char *at, int64_t count)
{
    static uint32_t table[256];
    static _Atomic bool made;
    if (!made) { /* every thread computes the same table */
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t rest = i;
            for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ 0x82F63B78u : rest >> 1;
            table[i] = rest;
        }
        made = true;
    }
    for (; count; count--) crc = crc >> 8 ^ table[(crc ^ *at++) & 255];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at,
                                                                 int64_t count)
{
    uint64_t wide = crc;
    for (; count >= 8; count -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; count; count--) crc = __builtin_ia32_crc32qi(crc, *at++);
    return crc;
}
#endif

uint32_t xs_crc32c(uint32_t before, const void *bytes, int64_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~before, bytes, count);
#endif
    return ~by_table(~before, bytes, count);
}
