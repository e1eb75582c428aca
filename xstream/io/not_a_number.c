/* The policies for NaNs that an intake receives. */
#include "intake.h"

typedef struct {
    char *data;
    int64_t bytes;
    xs_block *hold;
} numbers;

/* The samples of a column; false without memory. Nobody else has seen them, so they may be changed. */
static bool hold_numbers(xs_seg *column, numbers *out)
{
    out->data = (char *)(uintptr_t)xs_seg_hold(column, &out->hold);
    out->bytes = seg_bytes(column);
    return out->data != NULL;
}

static bool is_nan(const char *at, int32_t bytes)
{
    if (bytes == 8) {
        double value;
        memcpy(&value, at, sizeof value);
        return value != value;
    }
    if (bytes == 4) {
        float value;
        memcpy(&value, at, sizeof value);
        return value != value;
    }
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return (half & 0x7fff) > 0x7c00;
}

/* The place of the first NaN at or after a byte; -1: none follows. */
static int64_t next_nan(const numbers *in, int64_t at, int32_t bytes)
{
    for (; at + bytes <= in->bytes; at += bytes)
        if (is_nan(in->data + at, bytes)) return at;
    return -1;
}

static void set_to_zero(const numbers *in, int32_t bytes, int64_t item)
{
    for (int64_t at = 0; (at = next_nan(in, at, bytes)) >= 0;) {
        int64_t sample = at / item * item; /* a complex number as a whole */
        memset(in->data + sample, 0, (size_t)item);
        at = sample + item;
    }
}

/* Keeps the first samples of a block; false without memory. */
static bool keep_first(const xs_intake *intake, xs_feed_block *block, int64_t samples)
{
    for (int32_t i = 0; i < intake->record.fields; i++) {
        xs_seg *column = block->column[i];
        xs_seg *part = xs_seg_subseg(column, column->start, samples);
        if (!part) return false;
        xs_seg_drop(column);
        block->column[i] = part;
    }
    return true;
}

static void drop_block(const xs_intake *intake, xs_feed_block *block)
{
    for (int32_t i = 0; i < intake->record.fields; i++) {
        xs_seg_drop(block->column[i]);
        block->column[i] = NULL;
    }
}

static int32_t fail_at(xs_intake *intake)
{
    return intake_fail(intake, "sample %lld is not a number", (long long)intake->spoiled_at);
}

/* The samples before a NaN are handed over, and what follows is an error. Of messages, whole ones only. */
static int32_t end_before(xs_intake *intake, xs_feed_block *block, int64_t sample)
{
    int64_t record = intake->record.samples;
    intake->spoiled = true;
    intake->spoiled_at = (block->column[0]->start + sample) / record;
    int64_t samples = sample / record * record;
    if (block->step) samples = samples / block->step * block->step;
    if (samples && keep_first(intake, block, samples)) return XS_OK;
    drop_block(intake, block);
    return samples ? intake_fail(intake, "out of memory") : fail_at(intake);
}

int32_t intake_receive(xs_intake *intake, int64_t wanted, int64_t patience_ns, xs_feed_block *block)
{
    if (intake->spoiled) return fail_at(intake);
    int32_t status = intake->table->receive(intake, wanted, patience_ns, block);
    if (status || intake->record.nan == XS_NAN_KEEP || block->missing) return status;
    int64_t first = INT64_MAX;
    for (int32_t i = 0; i < intake->record.fields; i++) {
        const xs_record_field *field = &intake->field[i];
        int64_t item = field->kind == XS_PLAIN ? field->bytes : 8;
        numbers in;
        if (!field->real) continue;
        if (!hold_numbers(block->column[i], &in)) {
            drop_block(intake, block);
            return intake_fail(intake, "out of memory");
        }
        if (intake->record.nan == XS_NAN_ZERO) {
            set_to_zero(&in, field->real, item);
        } else {
            int64_t at = next_nan(&in, 0, field->real);
            if (at >= 0 && at / item < first) first = at / item;
        }
        xs_block_unhold(in.hold);
    }
    return first == INT64_MAX ? XS_OK : end_before(intake, block, first);
}
