/* Pages of Parquet files. */
#ifndef XS_IO_PAGES_H
#define XS_IO_PAGES_H
#include <stdint.h>

uint32_t xs_crc32(uint32_t before, const void *bytes, int64_t count);
/* Compares the pages of a column chunk with their checksums, where they have one. -1: they are right; else
 * the offset of the header of the first page that is not. What follows a header that cannot be read is left
 * to the reader of the pages. */
int64_t xs_wrong_page(const void *chunk, int64_t bytes);
/* The places of all column chunks, from the footer of a file, group by group. Returns how many there are, of
 * which at most `most` are written to `out`; -1 if the bytes are no footer. */
typedef struct {
    int64_t column;      /* its number in the row group */
    int64_t values;
    int64_t begin, bytes;
    int64_t data_page;   /* where the first one begins, behind a dictionary if there is one */
} xs_column_chunk;
int64_t xs_column_chunks(const void *footer, int64_t bytes, xs_column_chunk *out, int64_t most);

#endif
