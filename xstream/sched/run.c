/* Plans: building one, preparing it for a scheduler, and the loop with rate control around it. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include <pthread.h>
#include <time.h>

#include "schedulers.h"

enum {
    NAP_NS = 20000, /* how long to sleep while every source waits for its next tuple */
    LONG_NAP_NS = 1000000, /* the same where other threads are waited for, which may take long */
    LOOK_EVERY_MAX = 32,
    NEST_BYTES = 4 << 20, /* of stack that direct calls may take; half of it where it is small */
};

xs_plan *xs_plan_new(xs_manager *manager)
{
    xs_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->manager = manager;
    plan->copies = manager->kind == XS_COPY_ALWAYS;
    count_add(&manager->refs, 1);
    return plan;
}

void xs_plan_free(xs_plan *plan)
{
    for (int32_t i = 0; i < plan->ops; i++) {
        xs_op *op = plan->op[i];
        for (int32_t port = 0; port < op->ins; port++) queue_clear(&op->in[port]);
        if (op->table->destroy) op->table->destroy(op);
        for (int32_t port = 0; port < op->outs; port++) free(op->out[port].edge);
        free(op->out);
        free(op->in);
        free(op->in_shape);
        free(op->cost);
        free(op);
    }
    if (plan->failed_op) tuple_drop(plan->failed_tuple, plan->failed_segments);
    xs_manager *manager = plan->manager;
    free(plan->order);
    free(plan->source);
    free(plan->op);
    free(plan);
    xs_manager_drop(manager);
}

int32_t xs_plan_shape_in(xs_op *op, int32_t ports, const xs_shape *shapes)
{
    op->in = calloc((size_t)ports + 1, sizeof *op->in);
    op->in_shape = calloc((size_t)ports + 1, sizeof *op->in_shape);
    if (!op->in || !op->in_shape) return XS_FAILED;
    op->ins = ports;
    for (int32_t port = 0; port < ports; port++) {
        op->in_shape[port] = shapes[port];
        op->in[port] = (xs_queue){.op = op, .port = port};
    }
    uint64_t segments = ports ? shapes[0].segments : 0;
    op->measured = segments ? __builtin_ctzll(segments) : -1;
    for (int32_t port = 1; port < ports; port++) /* one field for all ports, or none */
        if (op->measured >= 0 && !(shapes[port].segments >> op->measured & 1)) op->measured = -1;
    return XS_OK;
}

int32_t xs_plan_shape_out(xs_op *op, int32_t ports, const xs_shape *shapes)
{
    op->out = calloc((size_t)ports + 1, sizeof *op->out);
    if (!op->out) return XS_FAILED;
    op->outs = ports;
    for (int32_t port = 0; port < ports; port++) op->out[port].shape = shapes[port];
    return XS_OK;
}

int32_t xs_plan_connect(xs_op *from, int32_t out_port, xs_op *to, int32_t in_port)
{
    xs_out *out = &from->out[out_port];
    xs_edge *edges = realloc(out->edge, (size_t)(out->edges + 1) * sizeof *edges);
    if (!edges) return XS_FAILED;
    edges[out->edges++] = (xs_edge){.to = to, .queue = &to->in[in_port], .port = in_port};
    out->edge = edges;
    return XS_OK;
}

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

/* One depth-first search, without recursion: marks the edges that close a cycle, which must queue,
 * and leaves the operators in an order in which everything comes after what feeds it. */
static int32_t search(xs_plan *plan, bool direct)
{
    enum { UNSEEN, ON_PATH, DONE };
    char *color = calloc((size_t)plan->ops + 1, 1);
    xs_visit *path = malloc(((size_t)plan->ops + 1) * sizeof *path);
    plan->order = malloc(((size_t)plan->ops + 1) * sizeof *plan->order);
    int32_t status = color && path && plan->order ? XS_OK : XS_FAILED;
    int32_t place = plan->ops;
    /* From the sources first: a cycle is then closed by the edge that comes back to where the
     * stream entered it. */
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
    return status;
}

int32_t xs_plan_prepare(xs_plan *plan, int32_t scheduler, int64_t tuple_burst, int64_t slice_ns)
{
    static const xs_scheduler *const kinds[] = {
        [XS_FIFO] = &xs_fifo, [XS_FIFO_SLICE] = &xs_fifo_slice, [XS_RTC] = &xs_rtc, [XS_DF] = &xs_df};
    plan->scheduler = kinds[scheduler];
    plan->tuple_burst = tuple_burst;
    plan->slice_ns = slice_ns;
    plan->admitting = true;
    plan->nap_ns = NAP_NS;
    plan_set_timing(plan, plan->profiled, 1);
    plan->source = malloc(((size_t)plan->ops + 1) * sizeof *plan->source);
    if (!plan->source || search(plan, plan->scheduler->direct)) return XS_FAILED;
    for (int32_t i = 0; i < plan->ops; i++) {
        xs_op *op = plan->op[i];
        if (!op->table->produce) continue;
        plan->source[plan->sources++] = op;
        /* Without rate control whatever has arrived waits in the queues. */
        for (int32_t port = 0; port < op->outs && !tuple_burst; port++)
            for (int32_t e = 0; e < op->out[port].edges; e++) op->out[port].edge[e].direct = false;
    }
    for (int32_t i = 0; i < plan->ops; i++) {
        xs_op *op = plan->op[i];
        if (op->outs && op->out[0].edges == 1 && op->out[0].edge->direct) {
            op->only = op->out[0].edge->to;
            op->only_port = op->out[0].edge->port;
        }
    }
    return XS_OK;
}

bool plan_look_up(xs_plan *plan)
{
    int64_t now = engine_now_ns(), spent = now - plan->looked_ns;
    if (spent > 1000000) plan->look_every = plan->look_every > 8 ? plan->look_every / 8 : 1;
    else if (spent < 100000 && plan->look_every < LOOK_EVERY_MAX) plan->look_every *= 2;
    plan->until_look = plan->look_every;
    plan->looked_ns = now;
    return plan->overdue = now > plan->deadline_ns;
}

/* Gaps of random length: operators take turns, and a fixed one would fall in step with them. A timed
 * tuple counts for as many as the gap before it is long on average. */
void plan_draw_timing(xs_plan *plan)
{
    bool due = plan->until_timed < 0;
    plan_set_timing(plan, due || plan->profiled, plan->profiled || !plan->gap ? 1 : plan->gap);
    if (!due) return;
    int rare = plan->look_every == 1 ? 3 : 6;
    plan->gap = (int64_t)1 << rare;
    plan->random = plan->random * 6364136223846793005u + 1442695040888963407u;
    plan->until_timed = (int64_t)(plan->random >> (63 - rare)); /* 0 to twice the gap, less one */
}

/* How far down direct calls may nest in this thread: the rest is for what operators call. */
static uintptr_t stack_floor(void)
{
    static _Thread_local uintptr_t end;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
#ifdef __linux__
    pthread_attr_t attributes;
    if (!end && !pthread_getattr_np(pthread_self(), &attributes)) {
        void *lowest;
        size_t size;
        if (!pthread_attr_getstack(&attributes, &lowest, &size)) end = (uintptr_t)lowest;
        pthread_attr_destroy(&attributes);
    }
#endif
    uintptr_t room = end && end < here ? (here - end) / 2 : NEST_BYTES / 32;
    return here - (room < NEST_BYTES ? room : NEST_BYTES);
}

/* Lets one source in: at most `burst` tuples, or as many as there are within the budget. A burst that
 * the budget cuts short goes on when the plan next runs: streams that belong together must not drift
 * apart. */
static int32_t admit_from(xs_op *source, int64_t burst)
{
    xs_plan *plan = source->plan;
    for (bool first = true; !burst || plan->admitted < burst; plan->admitted++, first = false) {
        if (!first && plan_overdue(plan)) {
            plan->cut_short = burst != 0;
            return XS_OK;
        }
        if (atomic_load_explicit(&plan->stop, memory_order_relaxed)) return XS_END;
        plan_sample_timing(plan);
        if (unlikely(source->tuples < FIRST_TIMED) && !plan->timed) plan_set_timing(plan, true, 1);
        xs_cost_mark mark;
        if (plan->profiled) cost_enter(plan, &mark);
        int64_t begin = plan->timed ? engine_now_ns() : 0;
        plan->child_ns = 0;
        int32_t status = source->table->produce(source);
        if (plan->timed) {
            source->busy_ns += plan->weight * (engine_now_ns() - begin - plan->child_ns);
            source->timed_tuples += plan->weight;
        }
        if (plan->profiled) cost_leave(source, &mark);
        if (status) return status;
        source->tuples++;
    }
    return XS_OK;
}

/* XS_OK: somebody has more; XS_WAIT: all that have more wait; XS_END: none has. */
static int32_t admit(xs_plan *plan)
{
    int32_t overall = plan->cut_short ? plan->admit_overall : XS_END;
    int32_t first = plan->cut_short ? plan->admit_source : 0;
    if (!plan->cut_short) plan->admitted = 0;
    plan->cut_short = false;
    for (int32_t i = first; i < plan->sources; i++, plan->admitted = 0) {
        xs_op *op = plan->source[i];
        if (op->ended) continue;
        int32_t status = admit_from(op, plan->tuple_burst);
        if (plan->cut_short) {
            plan->admit_source = i;
            plan->admit_overall = overall;
            return XS_OK;
        }
        if (status == XS_FAILED) {
            if (!plan->failed_op) plan->failed_op = op, plan->failed_port = -1;
            return status;
        }
        if (status == XS_END) op->ended = true;
        else if (status == XS_OK || overall == XS_END) overall = status;
    }
    return overall;
}

/* Tells the next operator that its streams have ended. */
static int32_t finish_next(xs_plan *plan)
{
    xs_op *op = plan->order[plan->finished++];
    if (!op->table->finish || atomic_load_explicit(&plan->stop, memory_order_relaxed)) return XS_OK;
    xs_cost_mark mark;
    if (plan->profiled) cost_enter(plan, &mark);
    int32_t status = op->table->finish(op);
    if (plan->profiled) cost_leave(op, &mark);
    if (status && !plan->failed_op) plan->failed_op = op, plan->failed_port = -1;
    return status;
}

static int32_t drain(xs_plan *plan)
{
    for (;;) {
        int32_t status = plan->scheduler->step(plan);
        if (status == XS_END) plan->spilled = false;
        if (status) return status;
        if (plan_overdue(plan)) return XS_OK;
    }
}

int32_t xs_plan_run(xs_plan *plan, int64_t budget_ns)
{
    plan->looked_ns = engine_now_ns();
    plan->deadline_ns = plan->looked_ns + budget_ns;
    plan->until_look = plan->look_every = 1;
    plan->overdue = false;
    plan->stack_floor = stack_floor();
    do {
        int32_t status;
        if (plan->admitting && !plan->sources_ended) {
            status = admit(plan);
            if (status == XS_FAILED) return status;
            plan->sources_ended = status == XS_END;
            plan->waiting = status == XS_WAIT;
            if (!plan->waiting) plan->nap_ns = NAP_NS;
            plan->admitting = plan->cut_short ||
                              (!plan->tuple_burst && status == XS_OK); /* more has arrived already */
            if (plan->admitting) continue;
        }
        status = drain(plan);
        if (status == XS_FAILED) return status;
        if (status == XS_OK) continue; /* not empty yet, and time to look up */
        plan->admitting = true;
        if (plan->sources_ended) {
            if (plan->finished == plan->ops) return XS_END;
            status = finish_next(plan);
            if (status) return status;
        } else if (plan->waiting) {
            if (engine_now_ns() + plan->nap_ns > plan->deadline_ns) return XS_WAIT;
            nanosleep(&(struct timespec){.tv_nsec = plan->nap_ns}, NULL);
            if (plan->patient && plan->nap_ns < LONG_NAP_NS) plan->nap_ns *= 2;
        }
    } while (!plan_overdue(plan));
    return XS_OK;
}

void xs_plan_stop(xs_plan *plan) { atomic_store_explicit(&plan->stop, 1, memory_order_relaxed); }

void xs_plan_failure(xs_plan *plan, xs_failure *out)
{
    bool on_tuple = plan->failed_op && plan->failed_port >= 0;
    *out = (xs_failure){plan->failed_op, plan->failed_port, on_tuple ? plan->failed_fields : 0,
                        plan->failed_tuple, plan->message};
}

int64_t xs_plan_queue_bytes_peak(xs_plan *plan) { return plan->queue_bytes_peak; }

int32_t xs_plan_queued_edges(xs_plan *plan)
{
    int32_t queued = 0;
    for (int32_t i = 0; i < plan->ops; i++)
        for (int32_t port = 0; port < plan->op[i]->outs; port++)
            for (int32_t e = 0; e < plan->op[i]->out[port].edges; e++)
                queued += !plan->op[i]->out[port].edge[e].direct;
    return queued;
}
