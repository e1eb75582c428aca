/* Parquet's footer and the headers of its pages: structs in the compact protocol of Thrift, from files that may
 * be damaged. */
#include "pages.h"

#include <stdbool.h>

enum { STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT }; /* types */
enum { PAGE_BYTES = 3, PAGE_CRC = 4 }; /* fields of a page's header: its size in the file, its checksum */
/* Of the footer, of a row group, of a column chunk, and of the metadata of that. */
enum { ROW_GROUPS = 4, COLUMNS = 1, METADATA = 3, VALUES = 5, CHUNK_BYTES = 7, DATA_PAGE = 9, DICTIONARY_PAGE = 11 };
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

/* -- the footer ---------------------------------------------------------------------------- */

typedef struct {
    reader from;
    xs_column_chunk *out;
    int64_t most, found;
} chunks;

static void read_metadata(chunks *all, xs_column_chunk *chunk)
{
    reader *from = &all->from;
    int64_t field = 0, dictionary = 0;
    for (uint32_t type; (type = next_field(from, &field)) && !from->bad;) {
        bool number = type == I64;
        if (field == VALUES && number) chunk->values = zigzag(from);
        else if (field == CHUNK_BYTES && number) chunk->bytes = zigzag(from);
        else if (field == DATA_PAGE && number) chunk->data_page = zigzag(from);
        else if (field == DICTIONARY_PAGE && number) dictionary = zigzag(from);
        else skip(from, type, 0, false);
    }
    bool first = dictionary > 0 && dictionary < chunk->data_page;
    chunk->begin = first ? dictionary : chunk->data_page;
}

static void read_chunk(chunks *all, int64_t column)
{
    xs_column_chunk chunk = {.column = column};
    int64_t field = 0;
    for (uint32_t type; (type = next_field(&all->from, &field)) && !all->from.bad;) {
        if (field == METADATA && type == STRUCT) read_metadata(all, &chunk);
        else skip(&all->from, type, 0, false);
    }
    if (all->from.bad) return;
    if (all->found < all->most) all->out[all->found] = chunk;
    all->found++;
}

/* The length of a list of structs; -1 if its items are something else. */
static int64_t structs(reader *from)
{
    uint32_t head = byte(from);
    uint64_t count = head >> 4 == LONG_FORM ? varint(from) : head >> 4;
    if ((head & 15) != STRUCT || count > (uint64_t)(from->end - from->at)) from->bad = true;
    return from->bad ? -1 : (int64_t)count;
}

static void read_row_group(chunks *all)
{
    int64_t field = 0;
    for (uint32_t type; (type = next_field(&all->from, &field)) && !all->from.bad;) {
        if (field != COLUMNS || type != LIST) {
            skip(&all->from, type, 0, false);
            continue;
        }
        int64_t columns = structs(&all->from);
        for (int64_t i = 0; i < columns && !all->from.bad; i++) read_chunk(all, i);
    }
}

int64_t xs_column_chunks(const void *footer, int64_t bytes, xs_column_chunk *out, int64_t most)
{
    const unsigned char *begin = footer;
    chunks all = {{begin, begin + bytes, false}, out, most, 0};
    int64_t field = 0;
    for (uint32_t type; (type = next_field(&all.from, &field)) && !all.from.bad;) {
        if (field != ROW_GROUPS || type != LIST) {
            skip(&all.from, type, 0, false);
            continue;
        }
        int64_t groups = structs(&all.from);
        for (int64_t i = 0; i < groups && !all.from.bad; i++) read_row_group(&all);
    }
    return all.from.bad ? -1 : all.found;
}
