/* Records on the wire, and columns of samples or slots. */
#include "../engine/engine.h"
#include "net.h"

static void reverse(char *value, int32_t bytes)
{
    for (char *last = value + bytes - 1; value < last; value++, last--) {
        char kept = *value;
        *value = *last;
        *last = kept;
    }
}

/* Values in the other byte order, in place. */
static void swap_values(char *values, int64_t bytes, int32_t unit)
{
    for (int64_t at = 0; at + unit <= bytes; at += unit) reverse(values + at, unit);
}

/* One value as a slot of eight bytes. */
static xs_slot widened(const char *value, const xs_record_field *field)
{
    char own[8] = {0};
    xs_slot slot = {.i = 0};
    memcpy(own, value, (size_t)field->bytes);
    if (field->swap) reverse(own, field->bytes);
    if (field->kind == XS_REAL) {
        float single;
        memcpy(&single, own, sizeof single);
        if (field->bytes == 4) slot.f = single;
        else memcpy(&slot.f, own, sizeof slot.f);
        return slot;
    }
    memcpy(&slot.i, own, sizeof slot.i);
    int32_t unused = 64 - 8 * field->bytes;
    if (field->kind == XS_SIGNED) slot.i = (int64_t)((uint64_t)slot.i << unused) >> unused;
    return slot;
}

static void narrowed(xs_slot slot, const xs_record_field *field, char *value)
{
    if (field->kind == XS_REAL && field->bytes == 4) {
        float single = (float)slot.f;
        memcpy(value, &single, sizeof single);
    } else {
        memcpy(value, &slot, (size_t)field->bytes); /* little-endian: the low bytes */
    }
    if (field->swap) reverse(value, field->bytes);
}

#define COPY_ITEMS(type)                                                           \
    for (int64_t i = 0; i < count; i++)                                            \
        memcpy(to + i * to_step, from + i * from_step, sizeof(type))

/* Copies items of one size from one stride to another. */
static void copy_items(char *to, int64_t to_step, const char *from, int64_t from_step, int32_t bytes,
                       int64_t count)
{
    switch (bytes) {
    case 1: COPY_ITEMS(int8_t); break;
    case 2: COPY_ITEMS(int16_t); break;
    case 4: COPY_ITEMS(int32_t); break;
    case 8: COPY_ITEMS(int64_t); break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
    }
}

void xs_unpack(const xs_record *record, const void *records, int64_t count, void **columns)
{
    for (int32_t i = 0; i < record->fields; i++) {
        const xs_record_field *field = &record->field[i];
        const char *from = (const char *)records + field->offset;
        if (field->kind != XS_PLAIN) {
            xs_slot *to = columns[i];
            for (int64_t j = 0; j < count; j++) to[j] = widened(from + j * record->bytes, field);
            continue;
        }
        int64_t bytes = (int64_t)field->bytes * record->samples;
        if (bytes == record->bytes) {
            if (columns[i] != records) memcpy(columns[i], records, (size_t)(count * bytes));
        } else {
            copy_items(columns[i], bytes, from, record->bytes, (int32_t)bytes, count);
        }
        if (field->swap) swap_values(columns[i], count * bytes, field->swap);
    }
}

void xs_pack(const xs_record *record, const void *const *columns, int64_t count, void *records)
{
    for (int32_t i = 0; i < record->fields; i++) {
        const xs_record_field *field = &record->field[i];
        char *to = (char *)records + field->offset;
        if (field->kind != XS_PLAIN) {
            const xs_slot *from = columns[i];
            for (int64_t j = 0; j < count; j++) narrowed(from[j], field, to + j * record->bytes);
            continue;
        }
        int32_t bytes = field->bytes * record->samples;
        copy_items(to, record->bytes, columns[i], bytes, bytes, count);
        for (int64_t j = 0; field->swap && j < count; j++)
            swap_values(to + j * record->bytes, bytes, field->swap);
    }
}

void xs_pack_rows(const xs_record *record, const xs_slot *rows, int64_t count, void *records)
{
    for (int64_t i = 0; i < count; i++)
        for (int32_t j = 0; j < record->fields; j++) {
            const xs_record_field *field = &record->field[j];
            narrowed(rows[i * record->fields + j], field,
                     (char *)records + i * record->bytes + field->offset);
        }
}
