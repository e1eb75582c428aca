/* Fields of tuples as columns: see columns.h. */
#include "columns.h"

bool columns_begin(xs_columns *columns, int32_t count, const xs_column *column)
{
    columns->count = count;
    memcpy(columns->column, column, (size_t)count * sizeof *column);
    columns->scratch = malloc((size_t)(count + 1) * CHUNK_ROWS * sizeof *columns->scratch);
    return columns->scratch != NULL;
}

void columns_end(xs_columns *columns) { free(columns->scratch); }

/* Segments of one tuple are columns of one table, so they must have the same number of samples. */
static int32_t count_rows(xs_op *op, xs_columns *columns, const xs_slot *tuple)
{
    const xs_shape *shape = &op->in_shape[0];
    columns->rows = 1;
    columns->start = 0;
    if (!shape->segments) return XS_OK;
    const xs_seg *first = tuple[__builtin_ctzll(shape->segments)].seg;
    columns->rows = first->width;
    columns->start = first->start;
    for (int32_t i = 0; i < columns->count; i++) {
        int32_t field = columns->column[i].field;
        if (!(shape->segments >> field & 1) || tuple[field].seg->width == first->width) continue;
        return op_fail(op, "segments of one tuple have %lld and %lld samples: their rows do not match",
                       (long long)first->width, (long long)tuple[field].seg->width);
    }
    return XS_OK;
}

int32_t columns_open(xs_op *op, xs_columns *columns, const xs_slot *tuple)
{
    columns->holds = 0;
    int32_t status = count_rows(op, columns, tuple);
    for (int32_t i = 0; i < columns->count && !status && columns->rows; i++) {
        int32_t field = columns->column[i].field;
        bool segment = op->in_shape[0].segments >> field & 1;
        columns->repeated[i] = !segment;
        columns->base[i] = (const char *)&tuple[field];
        if (!segment) continue;
        xs_block *hold = NULL;
        columns->base[i] = xs_seg_hold(tuple[field].seg, &hold);
        if (!columns->base[i]) status = op_out_of_memory(op);
        if (hold) columns->held[columns->holds++] = hold;
    }
    if (status) columns_close(columns);
    return status;
}

void columns_close(xs_columns *columns)
{
    while (columns->holds) xs_block_unhold(columns->held[--columns->holds]);
}

#define WIDEN(type, member) \
    for (int64_t i = 0; i < rows; i++) out[i].member = ((const type *)from)[i]

static void widen(xs_slot *restrict out, const char *from, int32_t type, int64_t rows)
{
    switch (type) {
    case XS_COLUMN_BOOL:
    case XS_COLUMN_UINT8: WIDEN(uint8_t, i); break;
    case XS_COLUMN_INT8: WIDEN(int8_t, i); break;
    case XS_COLUMN_INT16: WIDEN(int16_t, i); break;
    case XS_COLUMN_UINT16: WIDEN(uint16_t, i); break;
    case XS_COLUMN_INT32: WIDEN(int32_t, i); break;
    case XS_COLUMN_UINT32: WIDEN(uint32_t, i); break;
    case XS_COLUMN_FLOAT32: WIDEN(float, f); break;
    default: break; /* eight bytes: read in place */
    }
}

static int64_t item_bytes(int32_t type)
{
    static const int8_t bytes[] = {
        [XS_COLUMN_INT64] = 8, [XS_COLUMN_FLOAT64] = 8, [XS_COLUMN_BOOL] = 1, [XS_COLUMN_INT8] = 1,
        [XS_COLUMN_UINT8] = 1, [XS_COLUMN_INT16] = 2, [XS_COLUMN_UINT16] = 2, [XS_COLUMN_INT32] = 4,
        [XS_COLUMN_UINT32] = 4, [XS_COLUMN_FLOAT32] = 4};
    return bytes[type];
}

void columns_chunk(xs_columns *columns, int64_t from, int64_t rows)
{
    for (int32_t i = 0; i < columns->count; i++) {
        xs_slot *scratch = columns->scratch + (int64_t)i * CHUNK_ROWS;
        int64_t bytes = item_bytes(columns->column[i].type);
        if (columns->repeated[i]) {
            const xs_slot *number = (const xs_slot *)columns->base[i];
            columns->value[i] = rows == 1 ? number : scratch;
            for (int64_t row = 0; row < rows && rows > 1; row++) scratch[row] = *number;
        } else if (bytes == 8) {
            columns->value[i] = (const xs_slot *)(columns->base[i] + from * bytes);
        } else {
            widen(scratch, columns->base[i] + from * bytes, columns->column[i].type, rows);
            columns->value[i] = scratch;
        }
    }
}
