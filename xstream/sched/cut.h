/* Cutting a plan: cut.c chooses the parts, parts.c makes them. */
#ifndef XS_CUT_H
#define XS_CUT_H
#include "schedulers.h"

/* Places in the order, `low` < place <= `high`, where no part may begin. */
typedef struct {
    int32_t low, high;
} xs_range;

/* Whether other parts can have clones of an operator. */
bool may_clone(const xs_plan *plan, xs_range queued, const xs_op *op);

/* Makes `parts` parts, given the part of each operator by place. False: no memory. */
bool parts_make(xs_plan *plan, xs_range queued, const int32_t *part_of, int32_t parts);
#endif
