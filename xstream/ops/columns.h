/* The rows of a tuple: one where its fields are numbers, one a sample where they are segments. */
#ifndef XS_COLUMNS_H
#define XS_COLUMNS_H
#include "../engine/engine.h"
#include "operators.h"

enum { CHUNK_ROWS = 512 };

/* Some fields as columns of 64-bit values, a chunk of rows at a time. */
typedef struct {
    int32_t count;
    xs_column column[MAX_FIELDS];
    const xs_slot *value[MAX_FIELDS]; /* of the chunk */
    const char *base[MAX_FIELDS];     /* of the tuple */
    bool repeated[MAX_FIELDS];        /* a number beside segments: the same in all rows */
    xs_block *held[MAX_FIELDS];
    int32_t holds;
    int64_t rows, start;              /* of the tuple; where its first segment starts */
    xs_slot *scratch;                 /* a chunk a column */
} xs_columns;

bool columns_begin(xs_columns *columns, int32_t count, const xs_column *column);
void columns_end(xs_columns *columns);
int32_t columns_open(xs_op *op, xs_columns *columns, const xs_slot *tuple);
void columns_close(xs_columns *columns);
/* Rows [from, from + rows), at most CHUNK_ROWS. */
void columns_chunk(xs_columns *columns, int64_t from, int64_t rows);
#endif
