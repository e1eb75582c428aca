/* Aggregates of one group: see fold.h. Floats are added in float64 with a correction term (Knuth's
 * TwoSum), one after another, so that the result does not depend on how tuples divide the rows. */
#include <math.h>

#include "../kernels/kernel.h"
#include "fold.h"

/* The words of a fold. */
enum { SUM, CORRECTION };             /* sum of floats */
enum { VALUE, SEEN };                 /* first value */
enum { NUMBER, SHIFT, TOTAL, SQUARES }; /* std: sums of x - shift, where shift is the first x */

static double *reals(int64_t *words) { return (double *)words; }
static const double *const_reals(const int64_t *words) { return (const double *)words; }

void folds_begin(xs_folds *folds, int32_t count, const xs_aggregate_value *value)
{
    static const int8_t words[] = {[XS_COUNT] = 0, [XS_SUM] = 2, [XS_MEAN] = 2, [XS_STD] = 4,
                                   [XS_MIN] = 1, [XS_MAX] = 1, [XS_FIRST] = 2, [XS_LAST] = 1,
                                   [XS_DISTINCT] = 1, [XS_APPLY] = 1};
    *folds = (xs_folds){.count = count, .words = 1};
    for (int32_t i = 0; i < count; i++) {
        folds->fold[i] = (xs_fold){value[i].kind, value[i].column, value[i].real != 0, folds->words,
                                   value[i].kernel};
        folds->words += words[value[i].kind];
    }
}

void folds_clear(const xs_folds *folds, int64_t *words)
{
    memset(words, 0, (size_t)folds->words * sizeof *words);
    for (int32_t i = 0; i < folds->count; i++) {
        const xs_fold *fold = &folds->fold[i];
        if (fold->kind != XS_MIN && fold->kind != XS_MAX) continue;
        bool least = fold->kind == XS_MIN;
        if (fold->real) reals(words)[fold->at] = least ? INFINITY : -INFINITY;
        else words[fold->at] = least ? INT64_MAX : INT64_MIN;
    }
}

/* -- adding ---------------------------------------------------------------------------------- */

static inline void add_real(int64_t *word, double x)
{
    double sum = reals(word)[SUM], total = sum + x, added = total - sum;
    reals(word)[SUM] = total;
    reals(word)[CORRECTION] += (sum - (total - added)) + (x - added); /* the rounding error */
}

static inline bool add_whole(int64_t *word, int64_t x) { return !__builtin_add_overflow(*word, x, word); }

static inline void add_deviation(int64_t *word, double x)
{
    if (!word[NUMBER]++) reals(word)[SHIFT] = x;
    double from_shift = x - reals(word)[SHIFT];
    reals(word)[TOTAL] += from_shift;
    reals(word)[SQUARES] += from_shift * from_shift;
}

/* NaN wins as both least and largest value. */
static inline void add_least(int64_t *word, double x)
{
    if (x < reals(word)[0] || x != x) reals(word)[0] = x;
}
static inline void add_largest(int64_t *word, double x)
{
    if (x > reals(word)[0] || x != x) reals(word)[0] = x;
}
static inline void add_least_whole(int64_t *word, int64_t x)
{
    if (x < *word) *word = x;
}
static inline void add_largest_whole(int64_t *word, int64_t x)
{
    if (x > *word) *word = x;
}
static inline void add_first(int64_t *word, int64_t x)
{
    if (!word[SEEN]) word[VALUE] = x;
    word[SEEN] = 1;
}
static inline void add_last(int64_t *word, int64_t x) { *word = x; }

static double as_real(const xs_fold *fold, xs_slot x) { return fold->real ? x.f : (double)x.i; }

static int32_t overflow(xs_op *op)
{
    return op_fail(op, "a sum of whole numbers does not fit into 64 bits");
}

/* Adds rows to their accumulators. The second loop keeps a single accumulator in registers. */
#define EACH(statement)                                                  \
    if (at)                                                              \
        for (int64_t i = 0; i < rows; i++) {                             \
            int64_t *word = words + at[i];                               \
            statement;                                                   \
        }                                                                \
    else                                                                 \
        for (int64_t i = 0; i < rows; i++) {                             \
            int64_t *word = words;                                       \
            statement;                                                   \
        }

static int32_t fold_add(xs_op *op, const xs_fold *fold, int64_t *restrict words, const int64_t *at,
                        const xs_slot *x, int64_t rows)
{
    bool fits = true;
    switch (fold->kind) {
    case XS_SUM:
        if (fold->real) EACH(add_real(word, x[i].f))
        else EACH(fits &= add_whole(word, x[i].i))
        break;
    case XS_MEAN: EACH(add_real(word, as_real(fold, x[i]))) break;
    case XS_STD: EACH(add_deviation(word, as_real(fold, x[i]))) break;
    case XS_MIN:
        if (fold->real) EACH(add_least(word, x[i].f))
        else EACH(add_least_whole(word, x[i].i))
        break;
    case XS_MAX:
        if (fold->real) EACH(add_largest(word, x[i].f))
        else EACH(add_largest_whole(word, x[i].i))
        break;
    case XS_FIRST: EACH(add_first(word, x[i].i)) break;
    case XS_LAST: EACH(add_last(word, x[i].i)) break;
    default: break; /* the row count, or values that the caller counts */
    }
    return fits ? XS_OK : overflow(op);
}

int32_t folds_add(xs_op *op, const xs_folds *folds, int64_t *words, const int64_t *at,
                  const xs_columns *columns, int64_t from, int64_t rows)
{
    int32_t status = XS_OK;
    if (!at) *words += rows;
    else
        for (int64_t i = 0; i < rows; i++) words[at[i]]++;
    for (int32_t i = 0; i < folds->count && !status; i++) {
        const xs_fold *fold = &folds->fold[i];
        if (fold->column < 0) continue;
        status = fold_add(op, fold, words + fold->at, at, columns->value[fold->column] + from, rows);
    }
    return status;
}

/* -- merging --------------------------------------------------------------------------------- */

static void merge_deviation(int64_t *into, const int64_t *from)
{
    if (!into[NUMBER]) {
        memcpy(into, from, (SQUARES + 1) * sizeof *into);
        return;
    }
    double n = (double)from[NUMBER], step = const_reals(from)[SHIFT] - reals(into)[SHIFT];
    double total = const_reals(from)[TOTAL];
    reals(into)[SQUARES] += const_reals(from)[SQUARES] + step * (2 * total + n * step);
    reals(into)[TOTAL] += total + n * step;
    into[NUMBER] += from[NUMBER];
}

int32_t folds_merge(xs_op *op, const xs_folds *folds, int64_t *into, const int64_t *from)
{
    bool fits = true;
    *into = (int64_t)((uint64_t)*into + (uint64_t)*from); /* a forged checkpoint may have any number */
    for (int32_t i = 0; i < folds->count; i++) {
        const xs_fold *fold = &folds->fold[i];
        int64_t *to = into + fold->at;
        const int64_t *x = from + fold->at;
        switch (fold->kind) {
        case XS_SUM:
            if (!fold->real) {
                fits &= add_whole(to, *x);
                break;
            } /* fall through */
        case XS_MEAN:
            add_real(to, const_reals(x)[SUM]);
            reals(to)[CORRECTION] += const_reals(x)[CORRECTION];
            break;
        case XS_STD: merge_deviation(to, x); break;
        case XS_MIN:
            if (fold->real) add_least(to, const_reals(x)[0]);
            else add_least_whole(to, *x);
            break;
        case XS_MAX:
            if (fold->real) add_largest(to, const_reals(x)[0]);
            else add_largest_whole(to, *x);
            break;
        case XS_FIRST:
            if (x[SEEN]) add_first(to, x[VALUE]);
            break;
        case XS_LAST: add_last(to, *x); break;
        default: break;
        }
    }
    return fits ? XS_OK : overflow(op);
}

/* -- results --------------------------------------------------------------------------------- */

/* With infinities the correction is not finite and is left out. */
static double sum_of(const int64_t *words)
{
    double sum = const_reals(words)[SUM], correction = const_reals(words)[CORRECTION];
    return isfinite(correction) ? sum + correction : sum;
}

static double deviation(const int64_t *words)
{
    if (!words[NUMBER]) return NAN;
    double n = (double)words[NUMBER], mean = const_reals(words)[TOTAL] / n;
    double variance = const_reals(words)[SQUARES] / n - mean * mean;
    return sqrt(variance < 0 ? 0 : variance); /* NaN remains NaN */
}

/* For zero rows, counts and sums are 0, other floats NaN, other integers 0. */
xs_slot fold_result(const xs_fold *fold, const int64_t *words)
{
    int64_t rows = *words;
    const int64_t *word = words + fold->at;
    switch (fold->kind) {
    case XS_COUNT: return (xs_slot){.i = rows};
    case XS_SUM: return fold->real ? (xs_slot){.f = sum_of(word)} : (xs_slot){.i = *word};
    case XS_MEAN: return (xs_slot){.f = rows ? sum_of(word) / (double)rows : NAN};
    case XS_STD: return (xs_slot){.f = deviation(word)};
    case XS_DISTINCT:
    case XS_APPLY: return (xs_slot){.i = *word};
    default: break;
    }
    if (rows) return (xs_slot){.i = *word};
    return fold->real ? (xs_slot){.f = NAN} : (xs_slot){.i = 0};
}

int32_t fold_apply(xs_op *op, xs_folds *folds, const xs_fold *fold, const xs_slot *values,
                   int64_t count, int64_t *words)
{
    xs_slot result;
    if (xs_kernel_number(fold->kernel, values, count, &result.i)) {
        folds->raised = fold->kernel;
        return op_fail(op, "the kernel raised an error");
    }
    words[fold->at] = result.i;
    return XS_OK;
}
