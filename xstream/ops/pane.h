/* Panes: the smallest stretches that windows consist of, each with a table of groups. A row is added
 * to one pane, however many windows it is in; a window is put together from its panes. */
#ifndef XS_PANE_H
#define XS_PANE_H
#include "fold.h"
#include "table.h"

typedef struct xs_pane {
    struct xs_pane *next; /* among spare ones */
    int64_t number;
    xs_table cells;     /* a group each: keys, then its accumulator */
    xs_table *distinct; /* for each such value: (cell, value) */
    xs_slot *log;       /* for kernels: a row's cell, then its values */
    int64_t logged, log_room; /* rows */
} xs_pane;

/* Panes in order of their numbers, and what it takes to put some together. */
typedef struct {
    xs_op *op;
    xs_folds folds;
    int32_t keys, key_column[MAX_FIELDS];
    int32_t distincts, applies;         /* values that need more than an accumulator */
    int32_t distinct[MAX_FIELDS], apply[MAX_FIELDS]; /* which */
    xs_pane **live, *spare; /* spare ones have room for new rows */
    int64_t lives, spares, room;
    int64_t cell[CHUNK_ROWS], at[CHUNK_ROWS]; /* of the rows of a chunk */
    /* Put together: */
    xs_table merged, *merged_distinct;
    int64_t *map, map_room; /* from cells of the panes, one pane behind another, to rows of `merged` */
    xs_slot *values;
    int64_t *bound, values_room, bound_room; /* values by group; where each group's begin */
} xs_panes;

bool panes_begin(xs_panes *panes, xs_op *op, const xs_aggregate *how);
void panes_end(xs_panes *panes);
/* The pane of a number, made where there is none; NULL without memory. */
xs_pane *panes_at(xs_panes *panes, int64_t number);
/* Forgets panes whose number is below. */
void panes_forget(xs_panes *panes, int64_t below);
/* Adds rows [from, from + rows) of a chunk to a pane. */
int32_t pane_add(xs_panes *panes, xs_pane *pane, const xs_columns *columns, int64_t from, int64_t rows);
/* The first `count` live panes put together, or of those only the group of a key; groups are in the
 * order in which they first came. NULL: failed. */
const xs_table *panes_merge(xs_panes *panes, int64_t count, const int64_t *only);
#endif
