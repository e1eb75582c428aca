/* aggregate over windows of time, or over the whole stream. Windows end at multiples of a step and
 * cover the panes [end - per, end), counted in panes. A window is reported when it closes, which is
 * when a row at or after its end arrives, or whenever the contents of the current window change. */
#include "pane.h"
#include "scale.h"

typedef struct {
    xs_op op;
    xs_columns columns;
    xs_panes panes;
    xs_aggregate how; /* without its pointers */
    xs_table gone;    /* groups that lost rows */
    xs_pane *current; /* the pane of the last row; low and high are its time bounds */
    int64_t low, high, close_at;
    int64_t closed;   /* all windows that end at or before this pane are complete */
    int64_t last_stop; /* end of the last segment, for windows of samples */
    bool begun;
} xs_aggregation;

static int32_t bounds_of(xs_aggregation *a, int64_t end, xs_slot *tuple)
{
    if (scale_index(&a->how.pane, end - a->how.per, &tuple[0].i) &&
        scale_index(&a->how.pane, end, &tuple[1].i))
        return XS_OK;
    return op_fail(&a->op, "a window reaches beyond the times that are possible, which end at 2**62");
}

/* Emits the values of one group, or of zero rows if row is NULL. */
static int32_t emit_group(xs_aggregation *a, int64_t end, const int64_t *row)
{
    xs_slot tuple[MAX_FIELDS];
    int64_t nothing[MAX_FIELDS * 4 + 1];
    int32_t at = 0, keys = a->panes.keys;
    if (a->how.windowed) {
        if (bounds_of(a, end, tuple)) return XS_FAILED;
        at = 2;
    }
    for (int32_t k = 0; k < keys; k++) tuple[at++].i = row[k];
    const int64_t *words = row ? row + keys : nothing;
    if (!row) folds_clear(&a->panes.folds, nothing);
    for (int32_t i = 0; i < a->panes.folds.count; i++)
        tuple[at++] = fold_result(&a->panes.folds.fold[i], words);
    return emit(&a->op, 0, tuple);
}

/* Reports all groups of the window that ends with pane `end`. */
static int32_t report(xs_aggregation *a, int64_t end)
{
    int64_t count = 0;
    while (count < a->panes.lives && a->panes.live[count]->number < end) count++;
    if (!count) return a->how.empty ? emit_group(a, end, NULL) : XS_OK;
    const xs_table *groups = panes_merge(&a->panes, count, NULL);
    int32_t status = groups ? XS_OK : XS_FAILED;
    for (int64_t i = 0; i < (groups ? groups->count : 0) && !status; i++)
        status = emit_group(a, end, table_at(groups, i));
    return status;
}

/* Reports the windows that end at or before `target`. */
static int32_t close_until(xs_aggregation *a, int64_t target)
{
    int64_t per = a->how.per, every = a->how.every;
    while (a->panes.lives || a->how.empty) {
        int64_t end = a->closed + every;
        if (!a->how.empty && a->panes.live[0]->number >= end) /* earlier windows are empty */
            end = ((int64_t)floor_div(a->panes.live[0]->number, every) + 1) * every;
        if (end > target) break;
        int32_t status = report(a, end);
        if (status) return status;
        a->closed = end;
        panes_forget(&a->panes, end + every - per);
    }
    if (a->closed < target) a->closed = target;
    return XS_OK;
}

/* -- on change ------------------------------------------------------------------------------- */

static int32_t report_group(xs_aggregation *a, int64_t end, const int64_t *key)
{
    const xs_table *groups = panes_merge(&a->panes, a->panes.lives, key);
    if (!groups) return XS_FAILED;
    if (groups->count) return emit_group(a, end, table_at(groups, 0));
    return a->panes.keys ? XS_OK : emit_group(a, end, NULL);
}

/* Removes panes below a number and reports the remaining values of the groups that lost rows. */
static int32_t report_losses(xs_aggregation *a, int64_t end, int64_t below)
{
    table_clear(&a->gone);
    for (int64_t p = 0; p < a->panes.lives && a->panes.live[p]->number < below; p++)
        for (int64_t c = 0; c < a->panes.live[p]->cells.count; c++)
            if (table_add(&a->gone, table_at(&a->panes.live[p]->cells, c)) < 0)
                return op_out_of_memory(&a->op);
    panes_forget(&a->panes, below);
    int32_t status = XS_OK;
    for (int64_t i = 0; i < a->gone.count && !status; i++)
        status = report_group(a, end, table_at(&a->gone, i));
    return status;
}

/* Moves the current window, which ends one step after the last closed window. */
static int32_t slide_until(xs_aggregation *a, int64_t target)
{
    int64_t per = a->how.per, every = a->how.every;
    while (a->panes.lives) {
        int64_t loses = a->panes.live[0]->number + per - every; /* it leaves if closed > loses */
        int64_t closed = ((int64_t)floor_div(loses, every) + 1) * every;
        if (closed > target) break;
        int32_t status = report_losses(a, closed + every, closed + every - per);
        if (status) return status;
        a->closed = closed;
    }
    a->closed = target;
    return XS_OK;
}

static int32_t report_change(xs_aggregation *a, const xs_columns *columns, int64_t row)
{
    int64_t key[MAX_FIELDS];
    for (int32_t k = 0; k < a->panes.keys; k++)
        key[k] = columns->value[a->panes.key_column[k]][row].i;
    return report_group(a, a->closed + a->how.every, key);
}

/* -- rows ------------------------------------------------------------------------------------ */

static int32_t too_late(xs_aggregation *a, int64_t time)
{
    if (a->how.drop_late) {
        counter_add(&a->op.dropped, 1);
        return XS_END;
    }
    int64_t closed = 0;
    scale_index(&a->how.pane, a->closed, &closed);
    return op_fail(&a->op, "a row at %lld came after the windows up to %lld were reported",
                   (long long)time, (long long)closed);
}

/* Closes the windows that end before the row and makes the pane of the row the current one. XS_END:
 * the row is in no window, or too late. */
static int32_t enter(xs_aggregation *a, int64_t time)
{
    int64_t every = a->how.every, per = a->how.per;
    if (!index_fits(time) || !index_fits((__int128)time - a->how.lateness))
        return op_fail(&a->op, "time %lld lies outside the times that are possible, which end at 2**62",
                       (long long)time);
    int64_t number = scale_back(&a->how.pane, time), mark = scale_back(&a->how.pane, time - a->how.lateness);
    int64_t target = (int64_t)floor_div(mark, every) * every;
    int32_t status = XS_OK;
    if (!a->begun) a->closed = target;
    else if (target > a->closed)
        status = a->how.change ? slide_until(a, target) : close_until(a, target);
    if (status) return status;
    a->begun = true;
    a->current = NULL;
    if (!scale_index(&a->how.pane, a->closed + every, &a->close_at) ||
        __builtin_add_overflow(a->close_at, a->how.lateness, &a->close_at))
        a->close_at = INT64_MAX;
    if (number < a->closed) return too_late(a, time);
    int64_t end = ((int64_t)floor_div(number, every) + 1) * every;
    if (end - number > per) return XS_END; /* between windows */
    a->current = panes_at(&a->panes, number);
    if (!a->current) return op_out_of_memory(&a->op);
    scale_index(&a->how.pane, number, &a->low);
    if (!scale_index(&a->how.pane, number + 1, &a->high)) a->high = INT64_MAX;
    return XS_OK;
}

static bool stays(const xs_aggregation *a, int64_t time)
{
    return a->current && time >= a->low && time < a->high && time < a->close_at;
}

static int64_t time_of(const xs_aggregation *a, int64_t from, int64_t row)
{
    int32_t column = a->how.time_column;
    return column >= 0 ? a->columns.value[column][row].i : a->columns.start + from + row;
}

/* Adds the rows of a chunk, in runs of rows of the same pane. */
static int32_t add_chunk(xs_aggregation *a, int64_t from, int64_t rows)
{
    int32_t status = XS_OK;
    for (int64_t row = 0, run; row < rows && !status; row += run) {
        run = a->how.change ? 1 : rows - row;
        if (a->how.windowed) {
            int64_t time = time_of(a, from, row), most = run;
            if (!stays(a, time)) status = enter(a, time);
            for (run = 1; !status && run < most && stays(a, time_of(a, from, row + run));) run++;
            if (status == XS_END) {
                status = XS_OK;
                continue;
            }
        } else if (!a->current) {
            a->current = panes_at(&a->panes, 0);
            if (!a->current) status = op_out_of_memory(&a->op);
        }
        if (!status) status = pane_add(&a->panes, a->current, &a->columns, row, run);
        if (!status && a->how.change) status = report_change(a, &a->columns, row);
    }
    return status;
}

/* Overlapping segments are an error, because their samples would be counted twice. */
static int32_t check_samples(xs_aggregation *a)
{
    bool timed = a->how.windowed && a->how.time_column == XS_TIME_OF_SAMPLE;
    if (!timed || !a->columns.rows) return XS_OK;
    if (a->columns.start < a->last_stop)
        return op_fail(&a->op, "a segment starts at %lld, before the end of the last one at %lld",
                       (long long)a->columns.start, (long long)a->last_stop);
    a->last_stop = a->columns.start + a->columns.rows;
    return XS_OK;
}

static int32_t aggregate_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_aggregation *a = (xs_aggregation *)op;
    int32_t status = columns_open(op, &a->columns, tuple);
    if (status) return status;
    status = check_samples(a);
    for (int64_t from = 0; from < a->columns.rows && !status; from += CHUNK_ROWS) {
        int64_t left = a->columns.rows - from, rows = left < CHUNK_ROWS ? left : CHUNK_ROWS;
        columns_chunk(&a->columns, from, rows);
        status = add_chunk(a, from, rows);
    }
    columns_close(&a->columns);
    return status;
}

/* At the end of the stream the remaining windows are complete. */
static int32_t aggregate_finish(xs_op *op)
{
    xs_aggregation *a = (xs_aggregation *)op;
    if (a->how.change) return XS_OK;
    if (!a->how.windowed) {
        int32_t status = a->panes.lives || a->how.empty ? report(a, 1) : XS_OK;
        panes_forget(&a->panes, INT64_MAX);
        return status;
    }
    if (!a->panes.lives) return XS_OK;
    int64_t last = a->panes.live[a->panes.lives - 1]->number, every = a->how.every;
    return close_until(a, (int64_t)floor_div(last + a->how.per, every) * every);
}

static void aggregate_destroy(xs_op *op)
{
    xs_aggregation *a = (xs_aggregation *)op;
    columns_end(&a->columns);
    panes_end(&a->panes);
    table_free(&a->gone);
}

static void aggregate_save(xs_op *op, xs_image *image)
{
    const xs_aggregation *a = (xs_aggregation *)op;
    save_int(image, a->begun);
    save_int(image, a->closed);
    save_int(image, a->last_stop);
    panes_save(image, &a->panes);
}

/* The current pane is found again with the next row. */
static bool aggregate_load(xs_op *op, xs_stored *stored)
{
    xs_aggregation *a = (xs_aggregation *)op;
    return load_flag(stored, &a->begun) && load_range(stored, &a->closed, -INDEX_END, INDEX_END) &&
           load_int(stored, &a->last_stop) && panes_load(stored, &a->panes);
}

static const xs_op_table aggregate_table = {
    .process = aggregate_process, .finish = aggregate_finish, .destroy = aggregate_destroy,
    .save = aggregate_save, .load = aggregate_load};

xs_op *xs_op_aggregate(xs_plan *plan, const xs_aggregate *how)
{
    xs_aggregation *a = op_new(plan, sizeof *a, &aggregate_table);
    if (!a) return NULL;
    a->how = *how;
    a->how.value = NULL;
    a->how.key_column = NULL;
    a->how.column = NULL;
    a->last_stop = INT64_MIN;
    table_begin(&a->gone, how->keys, 0);
    bool ready = panes_begin(&a->panes, &a->op, how);
    return columns_begin(&a->columns, how->columns, how->column) && ready ? &a->op : NULL;
}

xs_op *xs_aggregate_raised(xs_op *op) { return ((xs_aggregation *)op)->panes.folds.raised; }
