/* Panes of windows: see pane.h. */
#include "pane.h"

bool panes_begin(xs_panes *panes, xs_op *op, const xs_aggregate *how)
{
    panes->op = op;
    folds_begin(&panes->folds, how->values, how->value);
    panes->keys = how->keys;
    memcpy(panes->key_column, how->key_column, (size_t)how->keys * sizeof *how->key_column);
    for (int32_t i = 0; i < how->values; i++) {
        if (how->value[i].kind == XS_DISTINCT) panes->distinct[panes->distincts++] = i;
        if (how->value[i].kind == XS_APPLY) panes->apply[panes->applies++] = i;
    }
    table_begin(&panes->merged, panes->keys, panes->folds.words);
    panes->merged_distinct = calloc((size_t)panes->distincts + 1, sizeof(xs_table));
    for (int32_t d = 0; d < panes->distincts && panes->merged_distinct; d++)
        table_begin(&panes->merged_distinct[d], 2, 0);
    return panes->merged_distinct != NULL;
}

static void pane_free(xs_panes *panes, xs_pane *pane)
{
    table_free(&pane->cells);
    for (int32_t d = 0; d < panes->distincts && pane->distinct; d++) table_free(&pane->distinct[d]);
    free(pane->distinct);
    free(pane->log);
    free(pane);
}

void panes_end(xs_panes *panes)
{
    for (int64_t i = 0; i < panes->lives; i++) pane_free(panes, panes->live[i]);
    while (panes->spare) {
        xs_pane *next = panes->spare->next;
        pane_free(panes, panes->spare);
        panes->spare = next;
    }
    for (int32_t d = 0; d < panes->distincts && panes->merged_distinct; d++)
        table_free(&panes->merged_distinct[d]);
    table_free(&panes->merged);
    free(panes->merged_distinct);
    free(panes->live);
    free(panes->map);
    free(panes->values);
    free(panes->bound);
}

static xs_pane *pane_new(xs_panes *panes, int64_t number)
{
    xs_pane *pane = panes->spare;
    if (pane) {
        panes->spare = pane->next;
        panes->spares--;
        pane->number = number;
        return pane;
    }
    pane = calloc(1, sizeof *pane);
    if (!pane) return NULL;
    pane->number = number;
    pane->distinct = calloc((size_t)panes->distincts + 1, sizeof *pane->distinct);
    table_begin(&pane->cells, panes->keys, panes->folds.words);
    for (int32_t d = 0; d < panes->distincts && pane->distinct; d++) table_begin(&pane->distinct[d], 2, 0);
    if (pane->distinct) return pane;
    free(pane);
    return NULL;
}

xs_pane *panes_at(xs_panes *panes, int64_t number)
{
    int64_t place = panes->lives;
    while (place && panes->live[place - 1]->number > number) place--;
    if (place && panes->live[place - 1]->number == number) return panes->live[place - 1];
    if (panes->lives == panes->room) {
        int64_t room = panes->room ? 2 * panes->room : 16;
        xs_pane **live = realloc(panes->live, (size_t)room * sizeof *live);
        if (!live) return NULL;
        panes->live = live;
        panes->room = room;
    }
    xs_pane *pane = pane_new(panes, number);
    if (!pane) return NULL;
    memmove(panes->live + place + 1, panes->live + place,
            (size_t)(panes->lives - place) * sizeof *panes->live);
    panes->live[place] = pane;
    panes->lives++;
    return pane;
}

/* Keeps a pane that is no longer used as a spare, unless there are more spares than live panes. */
static void pane_retire(xs_panes *panes, xs_pane *pane)
{
    if (panes->spares > panes->lives) {
        pane_free(panes, pane);
        return;
    }
    table_clear(&pane->cells);
    for (int32_t d = 0; d < panes->distincts; d++) table_clear(&pane->distinct[d]);
    pane->logged = 0;
    pane->next = panes->spare;
    panes->spare = pane;
    panes->spares++;
}

void panes_forget(xs_panes *panes, int64_t below)
{
    int64_t gone = 0;
    while (gone < panes->lives && panes->live[gone]->number < below)
        pane_retire(panes, panes->live[gone++]);
    panes->lives -= gone;
    if (gone) memmove(panes->live, panes->live + gone, (size_t)panes->lives * sizeof *panes->live);
}

/* -- checkpoints ----------------------------------------------------------------------------- */

void panes_save(xs_image *image, const xs_panes *panes)
{
    save_int(image, panes->lives);
    for (int64_t p = 0; p < panes->lives; p++) {
        const xs_pane *pane = panes->live[p];
        save_int(image, pane->number);
        table_save(image, &pane->cells);
        for (int32_t d = 0; d < panes->distincts; d++) table_save(image, &pane->distinct[d]);
        save_int(image, pane->logged);
        save_words(image, pane->log, pane->logged * (1 + panes->applies));
    }
}

static bool log_load(xs_stored *stored, const xs_panes *panes, xs_pane *pane)
{
    int64_t rows, words = 1 + panes->applies;
    if (!load_count(stored, 8 * words, &rows)) return false;
    const xs_slot *log = load_bytes(stored, 8 * words * rows);
    if (!log) return false;
    if (!rows) return true;
    pane->log = malloc((size_t)(rows * words) * sizeof *log);
    if (!pane->log) return load_refused(stored, "no memory is left");
    memcpy(pane->log, log, (size_t)(rows * words) * sizeof *log);
    pane->logged = pane->log_room = rows;
    for (int64_t i = 0; i < rows; i++)
        if (log[i * words].i < 0 || log[i * words].i >= pane->cells.count) return false;
    return true;
}

static bool pane_load(xs_stored *stored, const xs_panes *panes, xs_pane *pane)
{
    if (!table_load(stored, &pane->cells)) return false;
    for (int32_t d = 0; d < panes->distincts; d++) {
        if (!table_load(stored, &pane->distinct[d])) return false;
        for (int64_t i = 0; i < pane->distinct[d].count; i++) {
            int64_t cell = table_at(&pane->distinct[d], i)[0];
            if (cell < 0 || cell >= pane->cells.count) return false;
        }
    }
    return log_load(stored, panes, pane);
}

bool panes_load(xs_stored *stored, xs_panes *panes)
{
    int64_t count, number, last = -INDEX_END - 1;
    if (!load_count(stored, 8, &count)) return false;
    for (int64_t p = 0; p < count; p++, last = number) {
        if (!load_range(stored, &number, last + 1, INDEX_END)) return false;
        xs_pane *pane = panes_at(panes, number);
        if (!pane) return load_refused(stored, "no memory is left");
        if (!pane_load(stored, panes, pane)) return false;
    }
    return true;
}

/* -- adding rows ----------------------------------------------------------------------------- */

/* Finds the cells of rows, with one lookup for consecutive rows of a group. */
static int32_t find_cells(xs_panes *panes, xs_pane *pane, const xs_columns *columns, int64_t from,
                          int64_t rows)
{
    int64_t key[MAX_FIELDS], last = -1;
    xs_table *cells = &pane->cells;
    for (int64_t i = 0; i < rows; i++) {
        bool same = last >= 0;
        for (int32_t k = 0; k < panes->keys; k++) {
            int64_t x = columns->value[panes->key_column[k]][from + i].i;
            same &= last >= 0 && key[k] == x;
            key[k] = x;
        }
        if (!same) {
            int64_t before = cells->count;
            last = table_add(cells, key);
            if (unlikely(last < 0)) return op_out_of_memory(panes->op);
            if (last == before) folds_clear(&panes->folds, table_at(cells, last) + panes->keys);
        }
        panes->cell[i] = last;
        panes->at[i] = last * cells->words + panes->keys;
    }
    return XS_OK;
}

static int32_t add_distinct(xs_panes *panes, xs_pane *pane, const xs_columns *columns, int64_t from,
                            int64_t rows)
{
    for (int32_t d = 0; d < panes->distincts; d++) {
        const xs_fold *fold = &panes->folds.fold[panes->distinct[d]];
        const xs_slot *x = columns->value[fold->column] + from;
        xs_table *seen = &pane->distinct[d];
        for (int64_t i = 0; i < rows; i++) {
            int64_t before = seen->count, key[2] = {panes->cell[i], distinct_key(fold, x[i])};
            if (unlikely(table_add(seen, key) < 0)) return op_out_of_memory(panes->op);
            pane->cells.row[panes->at[i] + fold->at] += seen->count - before;
        }
    }
    return XS_OK;
}

static int32_t add_to_log(xs_panes *panes, xs_pane *pane, const xs_columns *columns, int64_t from,
                          int64_t rows)
{
    int32_t words = 1 + panes->applies;
    if (pane->logged + rows > pane->log_room) {
        int64_t room = 2 * pane->log_room + rows;
        xs_slot *log = realloc(pane->log, (size_t)(room * words) * sizeof *log);
        if (!log) return op_out_of_memory(panes->op);
        pane->log = log;
        pane->log_room = room;
    }
    for (int64_t i = 0; i < rows; i++) {
        xs_slot *entry = pane->log + pane->logged++ * words;
        entry->i = panes->cell[i];
        for (int32_t a = 0; a < panes->applies; a++)
            entry[1 + a] = columns->value[panes->folds.fold[panes->apply[a]].column][from + i];
    }
    return XS_OK;
}

int32_t pane_add(xs_panes *panes, xs_pane *pane, const xs_columns *columns, int64_t from, int64_t rows)
{
    bool detail = panes->distincts || panes->applies;
    int64_t one_group = panes->keys || detail ? rows : 1;
    int32_t status = find_cells(panes, pane, columns, from, one_group);
    if (status) return status;
    int64_t *words = pane->cells.row;
    status = panes->keys ? folds_add(panes->op, &panes->folds, words, panes->at, columns, from, rows)
                         : folds_add(panes->op, &panes->folds, words, NULL, columns, from, rows);
    if (!status && panes->distincts) status = add_distinct(panes, pane, columns, from, rows);
    if (!status && panes->applies) status = add_to_log(panes, pane, columns, from, rows);
    return status;
}

/* -- merging panes --------------------------------------------------------------------------- */

static bool reserve(void **memory, int64_t *room, int64_t wanted, size_t size)
{
    if (wanted <= *room) return true;
    void *larger = realloc(*memory, (size_t)(2 * wanted) * size);
    if (!larger) return false;
    *memory = larger;
    *room = 2 * wanted;
    return true;
}

/* Adds a cell of a pane to its group. Returns the group's row, or -1. */
static int64_t merge_cell(xs_panes *panes, const int64_t *cell, int32_t *status)
{
    int64_t before = panes->merged.count, row = table_add(&panes->merged, cell);
    if (row < 0) {
        *status = op_out_of_memory(panes->op);
        return -1;
    }
    int64_t *words = table_at(&panes->merged, row) + panes->keys;
    if (row == before) folds_clear(&panes->folds, words);
    *status = folds_merge(panes->op, &panes->folds, words, cell + panes->keys);
    return row;
}

static int32_t merge_cells(xs_panes *panes, const xs_pane *pane, int64_t *map, const int64_t *only)
{
    const xs_table *cells = &pane->cells;
    int32_t status = XS_OK;
    if (!only) {
        for (int64_t c = 0; c < cells->count && !status; c++)
            map[c] = merge_cell(panes, table_at(cells, c), &status);
        return status;
    }
    int64_t c = table_find(cells, only);
    if (panes->distincts || panes->applies)
        for (int64_t i = 0; i < cells->count; i++) map[i] = -1;
    if (c >= 0) map[c] = merge_cell(panes, table_at(cells, c), &status);
    return status;
}

/* A value that occurs in several panes counts once. */
static int32_t merge_distinct(xs_panes *panes, const xs_pane *pane, const int64_t *map)
{
    for (int32_t d = 0; d < panes->distincts; d++) {
        const xs_fold *fold = &panes->folds.fold[panes->distinct[d]];
        xs_table *all = &panes->merged_distinct[d];
        const xs_table *own = &pane->distinct[d];
        for (int64_t i = 0; i < own->count; i++) {
            const int64_t *entry = table_at(own, i);
            int64_t before = all->count, key[2] = {map[entry[0]], entry[1]};
            if (key[0] < 0) continue;
            if (table_add(all, key) < 0) return op_out_of_memory(panes->op);
            table_at(&panes->merged, key[0])[panes->keys + fold->at] += all->count - before;
        }
    }
    return XS_OK;
}

/* Calls a kernel for each group, on its values in the order of arrival. Without `map` the groups are
 * the cells of the only pane. */
static int32_t apply_kernel(xs_panes *panes, int32_t which, int64_t count, const int64_t *map,
                            xs_table *groups)
{
    const xs_fold *fold = &panes->folds.fold[panes->apply[which]];
    int32_t words = 1 + panes->applies;
    int64_t total = 0;
    for (int64_t p = 0; p < count; p++) total += panes->live[p]->logged;
    if (!reserve((void **)&panes->values, &panes->values_room, total + 1, sizeof *panes->values) ||
        !reserve((void **)&panes->bound, &panes->bound_room, groups->count + 2, sizeof *panes->bound))
        return op_out_of_memory(panes->op);
    int64_t *bound = panes->bound;
    memset(bound, 0, (size_t)(groups->count + 2) * sizeof *bound);
    for (int32_t pass = 0; pass < 2; pass++) { /* the first pass counts, the second places */
        for (int64_t p = 0, cells = 0; p < count; cells += panes->live[p++]->cells.count) {
            const xs_pane *pane = panes->live[p];
            for (int64_t i = 0; i < pane->logged; i++) {
                const xs_slot *entry = pane->log + i * words;
                int64_t group = map ? map[cells + entry->i] : entry->i;
                if (group < 0) continue;
                if (pass) panes->values[bound[group + 1]++] = entry[1 + which];
                else bound[group + 2]++;
            }
        }
        for (int64_t g = 2; g < groups->count + 2 && !pass; g++) bound[g] += bound[g - 1];
    }
    int32_t status = XS_OK;
    for (int64_t g = 0; g < groups->count && !status; g++)
        status = fold_apply(panes->op, &panes->folds, fold, panes->values + bound[g],
                            bound[g + 1] - bound[g], table_at(groups, g) + panes->keys);
    return status;
}

static int32_t merge_all(xs_panes *panes, int64_t count, const int64_t *only)
{
    int64_t cells = 0;
    for (int64_t p = 0; p < count; p++) cells += panes->live[p]->cells.count;
    if (!reserve((void **)&panes->map, &panes->map_room, cells + 1, sizeof *panes->map))
        return op_out_of_memory(panes->op);
    table_clear(&panes->merged);
    for (int32_t d = 0; d < panes->distincts; d++) table_clear(&panes->merged_distinct[d]);
    int64_t *map = panes->map;
    int32_t status = XS_OK;
    for (int64_t p = 0; p < count && !status; p++) {
        status = merge_cells(panes, panes->live[p], map, only);
        if (!status) status = merge_distinct(panes, panes->live[p], map);
        map += panes->live[p]->cells.count;
    }
    return status;
}

const xs_table *panes_merge(xs_panes *panes, int64_t count, const int64_t *only)
{
    bool alone = count == 1 && !only;
    xs_table *groups = alone ? &panes->live[0]->cells : &panes->merged;
    int32_t status = alone ? XS_OK : merge_all(panes, count, only);
    for (int32_t a = 0; a < panes->applies && !status; a++)
        status = apply_kernel(panes, a, count, alone ? NULL : panes->map, groups);
    return status ? NULL : groups;
}
