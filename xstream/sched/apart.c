/* Ports whose batches of tuples can be passed edge by edge, instead of tuple by tuple. */
#include "schedulers.h"

/* The operators that a search has seen have its number. */
typedef struct {
    int32_t *seen, search;
    xs_op **stack;
} xs_reach;

/* Whether `other` is the operator or gets what it emits. */
static bool leads_to(xs_reach *reach, xs_op *op, const xs_op *other)
{
    int32_t depth = 0;
    reach->search++;
    reach->stack[depth++] = op;
    reach->seen[op->id] = reach->search;
    while (depth) {
        op = reach->stack[--depth];
        if (op == other) return true;
        for (int32_t port = 0; port < op->outs; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) {
                xs_op *to = op->out[port].edge[e].to;
                if (reach->seen[to->id] == reach->search) continue;
                reach->seen[to->id] = reach->search;
                reach->stack[depth++] = to;
            }
    }
    return false;
}

static bool is_apart(xs_reach *reach, const xs_out *out)
{
    int32_t absorbing = 0;
    for (int32_t i = 0; i < out->edges; i++) absorbing += out->edge[i].to->table->absorbs != NULL;
    if (absorbing < out->edges - 1) return false;
    for (int32_t i = 0; i < out->edges; i++) {
        const xs_op *to = out->edge[i].to;
        for (int32_t other = 0; other < out->edges && to->table->absorbs; other++)
            if (other != i && leads_to(reach, out->edge[other].to, to)) return false;
    }
    return true;
}

int32_t plan_find_apart(xs_plan *plan)
{
    enum { EDGES_MAX = 8 }; /* of a port: each pair of them is looked at */
    size_t ops = (size_t)plan->ops + 1;
    xs_reach reach = {.seen = calloc(ops, sizeof *reach.seen), .stack = malloc(ops * sizeof *reach.stack)};
    bool room = reach.seen && reach.stack;
    for (int32_t i = 0; i < plan->ops && room; i++) {
        xs_op *op = plan->op[i];
        xs_out *out = op->out;
        if (!op->outs || out->shape.segments || out->edges < 2 || out->edges > EDGES_MAX) continue;
        out->apart = is_apart(&reach, out);
    }
    free(reach.seen);
    free(reach.stack);
    return room ? XS_OK : XS_FAILED;
}
