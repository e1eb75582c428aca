/* Panes: the smallest intervals that windows consist of, each with a table of groups. A row is added
 * to one pane, no matter how many windows it is in; a window is merged from its panes. */
#ifndef XS_PANE_H
#define XS_PANE_H
#include "fold.h"
#include "table.h"

typedef struct xs_pane {
    struct xs_pane *next; /* in the list of spare panes */
    int64_t number;
    xs_table cells;     /* one row per group: keys, then the accumulator */
    xs_table *distinct; /* for each distinct value: (cell, value) */
    xs_slot *log;       /* for kernels: the cell of a row, then its values */
    int64_t logged, log_room; /* in rows */
} xs_pane;

/* Panes in the order of their numbers, and the memory for merging them. */
typedef struct {
    xs_op *op;
    xs_folds folds;
    int32_t keys, key_column[MAX_FIELDS];
    int32_t distincts, applies;         /* values that need more than an accumulator */
    int32_t distinct[MAX_FIELDS], apply[MAX_FIELDS]; /* their numbers in `folds` */
    xs_pane **live, *spare; /* spare panes are reused */
    int64_t lives, spares, room;
    int64_t cell[CHUNK_ROWS], at[CHUNK_ROWS]; /* for the rows of a chunk */
    /* Result of a merge: */
    xs_table merged, *merged_distinct;
    int64_t *map, map_room; /* from cells of all panes, in order, to rows of `merged` */
    xs_slot *values;
    int64_t *bound, values_room, bound_room; /* values by group; where each group begins */
} xs_panes;

bool panes_begin(xs_panes *panes, xs_op *op, const xs_aggregate *how);
void panes_end(xs_panes *panes);
/* Returns the pane with a number, created if missing; NULL if memory ran out. */
xs_pane *panes_at(xs_panes *panes, int64_t number);
void panes_save(xs_image *image, const xs_panes *panes);
bool panes_load(xs_stored *stored, xs_panes *panes);
/* Removes panes whose number is less than `below`. */
void panes_forget(xs_panes *panes, int64_t below);
/* Adds rows [from, from + rows) of a chunk to a pane. */
int32_t pane_add(xs_panes *panes, xs_pane *pane, const xs_columns *columns, int64_t from, int64_t rows);
/* Merges the first `count` live panes, or only the group with the key `only`. Groups are in the order
 * of their first row. NULL on failure. */
const xs_table *panes_merge(xs_panes *panes, int64_t count, const int64_t *only);
#endif
