/* The headers of Parquet's pages: structs in the compact protocol of Thrift, from files that may be damaged. */
#include "pages.h"

#include <stdbool.h>

enum { STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT }; /* types */
enum { PAGE_BYTES = 3, PAGE_CRC = 4 }; /* fields of a page's header: its size in the file, its checksum */
enum { DEEPEST = 16, LONG_FORM = 15, VARINT_BITS = 63 };

typedef struct {
    const unsigned char *at, *end;
    bool bad; /* the bytes are no header */
} reader;

static uint32_t byte(reader *from)
{
    if (from->at < from->end) return *from->at++;
    from->bad = true;
    return 0;
}

static uint64_t varint(reader *from)
{
    uint64_t value = 0;
    for (int bits = 0; bits <= VARINT_BITS; bits += 7) {
        uint32_t part = byte(from);
        value |= (uint64_t)(part & 0x7F) << bits;
        if (part < 0x80) return value;
    }
    from->bad = true;
    return 0;
}

static int64_t zigzag(reader *from)
{
    uint64_t value = varint(from);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static void skip_bytes(reader *from, uint64_t count)
{
    if (count > (uint64_t)(from->end - from->at)) from->bad = true;
    else from->at += count;
}

static void skip(reader *from, uint32_t type, int depth, bool in_list);

static void skip_list(reader *from, int depth)
{
    uint32_t head = byte(from);
    uint64_t count = head >> 4 == LONG_FORM ? varint(from) : head >> 4;
    for (; count && !from->bad; count--) skip(from, head & 15, depth, true);
}

static void skip_map(reader *from, int depth)
{
    uint64_t count = varint(from);
    uint32_t types = count ? byte(from) : 0;
    for (; count && !from->bad; count--) {
        skip(from, types >> 4, depth, true);
        skip(from, types & 15, depth, true);
    }
}

/* The type of the next field, whose number is counted on; STOP at the end of the struct. */
static uint32_t next_field(reader *from, int64_t *field)
{
    uint32_t head = byte(from);
    if (from->bad || !head) return STOP;
    *field = head >> 4 ? *field + (head >> 4) : zigzag(from);
    return head & 15;
}

/* Truth values are in the type of a field, and take a byte in a list. */
static void skip(reader *from, uint32_t type, int depth, bool in_list)
{
    if (from->bad || depth > DEEPEST) {
        from->bad = true;
        return;
    }
    int64_t field = 0;
    switch (type) {
    case TRUE:
    case FALSE:
        if (in_list) byte(from);
        break;
    case BYTE: byte(from); break;
    case I16:
    case I32:
    case I64: varint(from); break;
    case DOUBLE: skip_bytes(from, 8); break;
    case BINARY: skip_bytes(from, varint(from)); break;
    case LIST:
    case SET: skip_list(from, depth + 1); break;
    case MAP: skip_map(from, depth + 1); break;
    case STRUCT:
        for (uint32_t next; (next = next_field(from, &field)) && !from->bad;)
            skip(from, next, depth + 1, false);
        break;
    default: from->bad = true;
    }
}

int64_t xs_wrong_page(const void *chunk, int64_t bytes)
{
    const unsigned char *begin = chunk;
    reader from = {begin, begin + bytes, false};
    while (from.at < from.end) {
        int64_t header = from.at - begin, field = 0, size = -1, crc = 0;
        bool has_crc = false;
        for (uint32_t type; (type = next_field(&from, &field)) && !from.bad;) {
            if (field == PAGE_BYTES && type == I32) size = zigzag(&from);
            else if (field == PAGE_CRC && type == I32) crc = zigzag(&from), has_crc = true;
            else skip(&from, type, 0, false);
        }
        if (from.bad || size < 0 || size > from.end - from.at) return -1;
        if (has_crc && xs_crc32(0, from.at, size) != (uint32_t)crc) return header;
        from.at += size;
    }
    return -1;
}
