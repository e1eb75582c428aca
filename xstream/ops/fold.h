/* Aggregates of one group: the accumulator, and how rows and partial results are added to it. */
#ifndef XS_FOLD_H
#define XS_FOLD_H
#include "columns.h"

/* One value of an aggregate and its place in an accumulator. */
typedef struct {
    int32_t kind, column; /* xs_aggregate_kind; the column, or -1 for none */
    bool real;            /* of floats; otherwise of integers */
    int32_t at;           /* its first word */
    xs_op *kernel;
} xs_fold;

/* Word 0 of an accumulator is the number of rows. */
typedef struct {
    int32_t count, words;
    xs_fold fold[MAX_FIELDS];
    xs_op *raised; /* the kernel that raised an error */
} xs_folds;

void folds_begin(xs_folds *folds, int32_t count, const xs_aggregate_value *value);
void folds_clear(const xs_folds *folds, int64_t *words);
/* Adds rows of a chunk: row i to the accumulator at words + at[i], or all to `words` without `at`. */
int32_t folds_add(xs_op *op, const xs_folds *folds, int64_t *words, const int64_t *at,
                  const xs_columns *columns, int64_t from, int64_t rows);
/* Adds a later accumulator of the same group. Distinct values are not added here: the caller counts a
 * value that occurs in both once. */
int32_t folds_merge(xs_op *op, const xs_folds *folds, int64_t *into, const int64_t *from);
xs_slot fold_result(const xs_fold *fold, const int64_t *words);
/* Calls a kernel on the values of one group. */
int32_t fold_apply(xs_op *op, xs_folds *folds, const xs_fold *fold, const xs_slot *values,
                   int64_t count, int64_t *words);

/* The bits of a float, with one pattern for all zeros and one for all NaNs. */
static inline int64_t distinct_key(const xs_fold *fold, xs_slot value)
{
    if (!fold->real) return value.i;
    if (value.f == 0.0) return 0;
    if (value.f != value.f) return INT64_MAX;
    return value.i;
}
#endif
