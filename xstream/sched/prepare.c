/* Preparing a plan for a scheduler: which edges are called directly, and the order in which operators
 * learn of the end of their streams. */
#include "schedulers.h"

typedef struct {
    xs_op *op;
    int32_t port, edge;
} xs_visit;

/* The next edge of the operator on top of the search, or NULL when it has no more. */
static xs_edge *next_edge(xs_visit *top)
{
    while (top->port < top->op->outs) {
        xs_out *out = &top->op->out[top->port];
        if (top->edge < out->edges) return &out->edge[top->edge++];
        top->port++;
        top->edge = 0;
    }
    return NULL;
}

/* Sources come first. So does an operator that takes the tuples of a source driven by another source,
 * since it is part of that other source. */
static void sources_first(xs_plan *plan)
{
    for (int32_t i = 0; i < plan->ops; i++) {
        xs_op *op = plan->order[i];
        if (!op->table->produce && !op->driven) continue;
        for (int32_t port = 0; op->driven && port < op->outs; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) op->out[port].edge[e].to->driven = true;
        memmove(plan->order + plan->entries + 1, plan->order + plan->entries,
                (size_t)(i - plan->entries) * sizeof *plan->order);
        plan->order[plan->entries++] = op;
    }
    plan->ordered = plan->ops;
    for (int32_t i = 0; i < plan->ops; i++) plan->order[i]->place = i;
}

/* One depth-first search, without recursion: marks the edges that close a cycle, which must queue,
 * and sorts the operators topologically. */
static int32_t search(xs_plan *plan, bool direct)
{
    enum { UNSEEN, ON_PATH, DONE };
    char *color = calloc((size_t)plan->ops + 1, 1);
    xs_visit *path = malloc(((size_t)plan->ops + 1) * sizeof *path);
    plan->order = malloc(((size_t)plan->ops + 1) * sizeof *plan->order);
    int32_t status = color && path && plan->order ? XS_OK : XS_FAILED;
    int32_t place = plan->ops;
    /* Start at the sources, so that a cycle is closed by the edge that returns to the operator
     * at which the stream entered it. */
    for (int32_t visit = 2 * plan->ops - 1; status == XS_OK && visit >= 0; visit--) {
        int32_t i = visit % plan->ops;
        if (color[i] || (visit >= plan->ops && plan->op[i]->ins)) continue;
        int32_t depth = 0;
        path[0] = (xs_visit){.op = plan->op[i]};
        color[i] = ON_PATH;
        while (depth >= 0) {
            xs_edge *edge = next_edge(&path[depth]);
            if (!edge) {
                xs_op *op = path[depth--].op;
                color[op->id] = DONE;
                plan->order[--place] = op;
                continue;
            }
            char seen = color[edge->to->id];
            edge->direct = direct && seen != ON_PATH;
            if (seen == UNSEEN) {
                color[edge->to->id] = ON_PATH;
                path[++depth] = (xs_visit){.op = edge->to};
            }
        }
    }
    free(color);
    free(path);
    if (status == XS_OK) sources_first(plan);
    return status;
}

void op_find_only(xs_op *op)
{
    bool only = op->outs && op->out[0].edges == 1 && op->out[0].edge->direct;
    op->only = only ? op->out[0].edge->to : NULL;
    op->only_port = only ? op->out[0].edge->port : 0;
    for (int32_t e = 0; op->outs && e < op->out[0].edges; e++)
        if (!op->out[0].edge[e].direct) op->out[0].apart = false;
}

int32_t xs_plan_prepare(xs_plan *plan, int32_t scheduler, int64_t tuple_burst, int64_t slice_ns)
{
    static const xs_scheduler *const kinds[] = {
        [XS_FIFO] = &xs_fifo, [XS_FIFO_SLICE] = &xs_fifo_slice, [XS_RTC] = &xs_rtc, [XS_DF] = &xs_df};
    plan->scheduler = kinds[scheduler];
    plan->tuple_burst = tuple_burst;
    plan->slice_ns = slice_ns;
    plan->parts = 1;
    plan->admitting = true;
    plan->nap_ns = NAP_NS;
    plan_set_timing(plan, plan->profiled, 1);
    plan->source = malloc(((size_t)plan->ops + 1) * sizeof *plan->source);
    if (!plan->source || search(plan, plan->scheduler->direct)) return XS_FAILED;
    for (int32_t i = 0; i < plan->ops; i++) {
        xs_op *op = plan->op[i];
        if (!op->table->produce) continue;
        if (op->driven) { /* the source that drives it takes its tuples at once */
            for (int32_t port = 0; port < op->outs; port++)
                for (int32_t e = 0; e < op->out[port].edges; e++) op->out[port].edge[e].direct = true;
            continue;
        }
        plan->source[plan->sources++] = op;
        /* Without rate control all tuples that have arrived wait in the queues. */
        for (int32_t port = 0; port < op->outs && !tuple_burst; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) op->out[port].edge[e].direct = false;
    }
    if (plan->scheduler->direct && plan_find_apart(plan)) return XS_FAILED;
    for (int32_t i = 0; i < plan->ops; i++) op_find_only(plan->op[i]);
    return XS_OK;
}
