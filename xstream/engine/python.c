/* Plain Python operators and sources: pass a tuple to Python and emit the results. */
#include <time.h>

#include "saving.h"

/* Defined by the extension module; the bodies are in xstream/engine/_python.py. */
int32_t xs_python_process(int64_t token);
int32_t xs_python_produce(int64_t token);
int32_t xs_python_finish(int64_t token);

typedef struct {
    xs_op op;
    int64_t token;
    xs_exchange exchange;
    xs_slot input[MAX_FIELDS];
    int64_t extent[2 * MAX_FIELDS];
} xs_python;

static int32_t send_rows(xs_python *python)
{
    xs_exchange *exchange = &python->exchange;
    if (!exchange->count) return XS_OK;
    const xs_shape *shape = &python->op.out[exchange->port].shape;
    int32_t status = XS_OK;
    for (int64_t i = 0; i < exchange->count; i++) {
        xs_slot *row = exchange->rows + i * shape->fields;
        if (!status) status = emit_giving(&python->op, exchange->port, row, row);
        tuple_drop(row, shape->segments);
    }
    exchange->count = 0;
    return status;
}

static int32_t python_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_python *python = (xs_python *)op;
    const xs_shape *shape = &op->in_shape[port];
    for (int32_t field = 0; field < shape->fields; field++) {
        python->input[field] = tuple[field];
        if (!(shape->segments >> field & 1)) continue;
        xs_seg *seg = xs_seg_ref(tuple[field].seg);
        python->extent[2 * field] = seg->start;
        python->extent[2 * field + 1] = seg->width;
    }
    python->exchange.port = port;
    xs_lent outer = lent_segments;
    bool given = op->plan->given == tuple;
    lent_segments = (xs_lent){given ? &op->plan->given->seg : NULL, given ? shape->segments : 0};
    int32_t status = xs_python_process(python->token);
    lent_segments = outer;
    int32_t sent = send_rows(python);
    return status ? op_fail(op, "the operator raised an error") : sent;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Sources wait in their code, for data or until a tuple is due: that is no work of theirs. */
static int32_t produce_timed(xs_plan *plan, int64_t token)
{
    int64_t begin = engine_now_ns(), begin_cpu = thread_cpu_ns();
    int32_t status = xs_python_produce(token);
    int64_t cpu = thread_cpu_ns() - begin_cpu, waited = engine_now_ns() - begin - cpu;
    if (waited > 0) plan->child_ns += waited;
    return status;
}

static int32_t python_produce(xs_op *op)
{
    xs_python *python = (xs_python *)op;
    python->exchange.port = 0;
    int32_t status = op->plan->timed ? produce_timed(op->plan, python->token) : xs_python_produce(python->token);
    if (status == XS_FAILED) return op_fail(op, "the source raised an error");
    const xs_shape *shape = &op->out[0].shape;
    int field = shape->segments ? __builtin_ctzll(shape->segments) : -1;
    for (int64_t i = 0; i < python->exchange.count; i++)
        counter_add(&op->samples,
                    field < 0 ? 1 : python->exchange.rows[i * shape->fields + field].seg->width);
    int32_t sent = send_rows(python);
    return sent ? sent : status;
}

static int32_t python_finish(xs_op *op)
{
    xs_python *python = (xs_python *)op;
    python->exchange.port = 0;
    int32_t status = xs_python_finish(python->token);
    int32_t sent = send_rows(python);
    return status ? op_fail(op, "the operator raised an error") : sent;
}

/* What Python code keeps is saved by xstream/recovery. */
static const xs_op_table python_table = {
    .process = python_process, .finish = python_finish, .save = save_nothing};
static const xs_op_table source_table = {.produce = python_produce, .save = save_nothing};

static xs_op *python_new(xs_plan *plan, int64_t token, const xs_op_table *table)
{
    xs_python *python = op_new(plan, sizeof *python, table);
    if (!python) return NULL;
    python->token = token;
    python->exchange.input = python->input;
    python->exchange.extent = python->extent;
    return &python->op;
}

xs_op *xs_op_python(xs_plan *plan, int64_t token) { return python_new(plan, token, &python_table); }

xs_op *xs_op_python_source(xs_plan *plan, int64_t token)
{
    return python_new(plan, token, &source_table);
}

xs_exchange *xs_python_exchange(xs_op *op) { return &((xs_python *)op)->exchange; }
