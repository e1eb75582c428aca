/* Pages of Parquet files. */
#ifndef XS_IO_PAGES_H
#define XS_IO_PAGES_H
#include <stdint.h>

uint32_t xs_crc32(uint32_t before, const void *bytes, int64_t count);
/* Compares the pages of a column chunk with their checksums, where they have one. -1: they are right; else
 * the offset of the header of the first page that is not. What follows a header that cannot be read is left
 * to the reader of the pages. */
int64_t xs_wrong_page(const void *chunk, int64_t bytes);

#endif
