/* aggregate over windows of n rows of each group. A group keeps the panes of its current window in a
 * ring buffer, and also the rows themselves for values that need more than an accumulator. */
#include "fold.h"
#include "table.h"

typedef struct {
    xs_op op;
    xs_columns columns;
    xs_folds folds;
    xs_aggregate how;  /* without its pointers */
    int32_t key_column[MAX_FIELDS];
    int32_t raws, raw[MAX_FIELDS]; /* values that need the rows themselves */
    int64_t window;    /* in rows */
    xs_table groups;   /* keys, number of rows, panes, stored rows */
    xs_table seen;     /* distinct values of the window */
    xs_slot *values;   /* values of the window, in order */
    int64_t *merged;   /* accumulator of the window */
    int64_t base, next; /* for samples: the first index, and the next one expected */
    bool sampled, begun;
} xs_row_aggregation;

static int64_t *pane_of(const xs_row_aggregation *a, int64_t *words, int64_t number)
{
    return words + 1 + number % a->how.per * a->folds.words;
}

static xs_slot *kept_rows(const xs_row_aggregation *a, int64_t *words, int32_t raw)
{
    return (xs_slot *)(words + 1 + a->how.per * a->folds.words + raw * a->window);
}

/* Computes the values that need the rows themselves, from rows [first, stop) of a group. */
static int32_t finish_raws(xs_row_aggregation *a, int64_t *words, int64_t *result, int64_t first,
                           int64_t stop)
{
    for (int32_t r = 0; r < a->raws; r++) {
        const xs_fold *fold = &a->folds.fold[a->raw[r]];
        const xs_slot *kept = kept_rows(a, words, r);
        for (int64_t row = first; row < stop; row++) a->values[row - first] = kept[row % a->window];
        if (fold->kind == XS_APPLY) {
            if (fold_apply(&a->op, &a->folds, fold, a->values, stop - first, result)) return XS_FAILED;
            continue;
        }
        table_clear(&a->seen);
        for (int64_t i = 0; i < stop - first; i++) {
            int64_t key = distinct_key(fold, a->values[i]);
            if (table_add(&a->seen, &key) < 0) return op_out_of_memory(&a->op);
        }
        result[fold->at] = a->seen.count;
    }
    return XS_OK;
}

/* Reports the window that begins with pane `first`, from the rows received so far. */
static int32_t report(xs_row_aggregation *a, int64_t *group, int64_t first)
{
    int64_t *words = group + a->how.keys, rows = words[0], pane_rows = a->how.pane_rows;
    int32_t status = XS_OK;
    folds_clear(&a->folds, a->merged);
    for (int64_t p = first; p <= (rows - 1) / pane_rows && !status; p++)
        status = folds_merge(&a->op, &a->folds, a->merged, pane_of(a, words, p));
    if (!status && a->raws) status = finish_raws(a, words, a->merged, first * pane_rows, rows);
    if (status) return status;
    xs_slot tuple[MAX_FIELDS];
    int32_t at = 0;
    tuple[at++].i = a->base + first * pane_rows;
    tuple[at++].i = a->base + first * pane_rows + a->window;
    for (int32_t k = 0; k < a->how.keys; k++) tuple[at++].i = group[k];
    for (int32_t i = 0; i < a->folds.count; i++)
        tuple[at++] = fold_result(&a->folds.fold[i], a->merged);
    return emit(&a->op, 0, tuple);
}

/* After adding rows of one pane: reports a full window, or the change of the current one. */
static int32_t report_due(xs_row_aggregation *a, int64_t *group)
{
    int64_t rows = group[a->how.keys], per = a->how.per, every = a->how.every;
    int64_t pane = (rows - 1) / a->how.pane_rows;
    if (a->how.change) return report(a, group, pane < per ? 0 : ((pane - per) / every + 1) * every);
    bool full = rows % a->how.pane_rows == 0 && pane + 1 >= per && (pane + 1 - per) % every == 0;
    return full ? report(a, group, pane + 1 - per) : XS_OK;
}

/* Adds rows of one group that belong to one pane. */
static int32_t add_rows(xs_row_aggregation *a, int64_t number, int64_t from, int64_t rows)
{
    int64_t *group = table_at(&a->groups, number), *words = group + a->how.keys, before = words[0];
    int64_t pane = before / a->how.pane_rows;
    words[0] += rows;
    if (a->how.every > a->how.per && pane % a->how.every >= a->how.per) return XS_OK; /* in no window */
    int64_t *cell = pane_of(a, words, pane);
    if (before % a->how.pane_rows == 0) folds_clear(&a->folds, cell);
    int32_t status = folds_add(&a->op, &a->folds, cell, NULL, &a->columns, from, rows);
    for (int32_t r = 0; r < a->raws; r++) {
        const xs_slot *x = a->columns.value[a->folds.fold[a->raw[r]].column] + from;
        xs_slot *kept = kept_rows(a, words, r);
        for (int64_t i = 0; i < rows; i++) kept[(before + i) % a->window] = x[i];
    }
    return status ? status : report_due(a, group);
}

static int32_t add_chunk(xs_row_aggregation *a, int64_t rows)
{
    int64_t key[MAX_FIELDS];
    int32_t status = XS_OK;
    for (int64_t row = 0, run; row < rows && !status; row += run) {
        for (int32_t k = 0; k < a->how.keys; k++) key[k] = a->columns.value[a->key_column[k]][row].i;
        int64_t before = a->groups.count, number = table_add(&a->groups, key);
        if (number < 0) return op_out_of_memory(&a->op);
        int64_t *count = table_at(&a->groups, number) + a->how.keys;
        if (number == before) *count = 0;
        run = 1;
        if (!a->how.keys && !a->how.change) { /* all rows belong to one group */
            int64_t room = a->how.pane_rows - *count % a->how.pane_rows;
            run = rows - row < room ? rows - row : room;
        }
        status = add_rows(a, number, row, run);
    }
    return status;
}

/* Sample indices number the rows, so segments must be contiguous. */
static int32_t check_samples(xs_row_aggregation *a)
{
    if (!a->sampled || !a->columns.rows) return XS_OK;
    int64_t start = a->columns.start;
    if (!a->begun) a->base = a->next = start;
    a->begun = true;
    if (start != a->next)
        return op_fail(&a->op, "a segment starts at %lld, and the next sample is %lld: windows of so "
                       "many samples have no gaps", (long long)start, (long long)a->next);
    a->next = start + a->columns.rows;
    return XS_OK;
}

static int32_t rows_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_row_aggregation *a = (xs_row_aggregation *)op;
    int32_t status = columns_open(op, &a->columns, tuple);
    if (status) return status;
    status = check_samples(a);
    for (int64_t from = 0; from < a->columns.rows && !status; from += CHUNK_ROWS) {
        int64_t left = a->columns.rows - from, rows = left < CHUNK_ROWS ? left : CHUNK_ROWS;
        columns_chunk(&a->columns, from, rows);
        status = add_chunk(a, rows);
    }
    columns_close(&a->columns);
    return status;
}

static void rows_destroy(xs_op *op)
{
    xs_row_aggregation *a = (xs_row_aggregation *)op;
    columns_end(&a->columns);
    table_free(&a->groups);
    table_free(&a->seen);
    free(a->values);
    free(a->merged);
}

static void rows_save(xs_op *op, xs_image *image)
{
    const xs_row_aggregation *a = (xs_row_aggregation *)op;
    save_int(image, a->begun);
    save_int(image, a->base);
    save_int(image, a->next);
    table_save(image, &a->groups);
}

static bool rows_load(xs_op *op, xs_stored *stored)
{
    xs_row_aggregation *a = (xs_row_aggregation *)op;
    if (!load_flag(stored, &a->begun) || !load_range(stored, &a->base, -INDEX_END, INDEX_END) ||
        !load_range(stored, &a->next, -INDEX_END, INDEX_END) || !table_load(stored, &a->groups))
        return false;
    for (int64_t i = 0; i < a->groups.count; i++) {
        int64_t rows = table_at(&a->groups, i)[a->how.keys];
        if (rows < 0 || rows > INDEX_END) return load_refused(stored, "a number is out of range");
    }
    return true;
}

static const xs_op_table rows_table = {
    .process = rows_process, .destroy = rows_destroy, .save = rows_save, .load = rows_load};

xs_op *xs_aggregate_rows_raised(xs_op *op) { return ((xs_row_aggregation *)op)->folds.raised; }

xs_op *xs_op_aggregate_rows(xs_plan *plan, const xs_aggregate *how, int32_t sampled)
{
    xs_row_aggregation *a = op_new(plan, sizeof *a, &rows_table);
    if (!a) return NULL;
    a->how = *how;
    a->how.value = NULL;
    a->how.key_column = NULL;
    a->how.column = NULL;
    a->sampled = sampled != 0;
    a->window = how->per * how->pane_rows;
    folds_begin(&a->folds, how->values, how->value);
    memcpy(a->key_column, how->key_column, (size_t)how->keys * sizeof *how->key_column);
    for (int32_t i = 0; i < how->values; i++)
        if (how->value[i].kind == XS_DISTINCT || how->value[i].kind == XS_APPLY) a->raw[a->raws++] = i;
    table_begin(&a->groups, how->keys, 0);
    a->groups.words += (int32_t)(1 + how->per * a->folds.words + a->raws * a->window);
    table_begin(&a->seen, 1, 0);
    a->values = malloc((size_t)(a->raws ? a->window : 1) * sizeof *a->values);
    a->merged = malloc((size_t)a->folds.words * sizeof *a->merged);
    bool ready = columns_begin(&a->columns, how->columns, how->column);
    return ready && a->values && a->merged ? &a->op : NULL;
}
