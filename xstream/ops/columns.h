/* The rows of a tuple: one row if its fields are numbers, one row per sample if they are segments. */
#ifndef XS_COLUMNS_H
#define XS_COLUMNS_H
#include "../engine/engine.h"
#include "operators.h"

enum { CHUNK_ROWS = 512 };

/* The fields in use as columns of 64-bit values, one chunk of rows at a time. */
typedef struct {
    int32_t count;
    xs_column column[MAX_FIELDS];
    const xs_slot *value[MAX_FIELDS]; /* of the current chunk */
    const char *base[MAX_FIELDS];     /* samples of the tuple */
    bool repeated[MAX_FIELDS];        /* a number next to segments: the same in all rows */
    xs_block *held[MAX_FIELDS];
    int32_t holds;
    int64_t rows, start;              /* number of rows of the tuple; start of its first segment */
    xs_slot *scratch;                 /* one chunk per column */
} xs_columns;

bool columns_begin(xs_columns *columns, int32_t count, const xs_column *column);
void columns_end(xs_columns *columns);
int32_t columns_open(xs_op *op, xs_columns *columns, const xs_slot *tuple);
void columns_close(xs_columns *columns);
/* Loads rows [from, from + rows), at most CHUNK_ROWS. */
void columns_chunk(xs_columns *columns, int64_t from, int64_t rows);
#endif
