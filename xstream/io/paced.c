/* paced: a source whose tuples are held until they are due by a clock. */
#include <time.h>

#include "../engine/saving.h"
#include "io.h"

/* Defined by the extension module; the body is in xstream/io/paced.py. Waits a little for a time of a
 * Python clock and returns the current time; less than 0 if the clock failed. */
int64_t xs_io_clock(int64_t token, int64_t due_ns);

#define AT_ONCE (INT64_MIN / 2) /* the time of tuples that are due whatever the clock says */

enum {
    PATIENCE_NS = 5000000, /* between two checks for a stop of the plan */
    SHARED_PATIENCE_NS = 1000000, /* and for tuples of other sources */
};

typedef struct {
    int32_t port;
    int64_t due_ns;
    xs_slot tuple[MAX_FIELDS];
} xs_held;

typedef struct {
    xs_op op;
    xs_op *inner;
    xs_pace pace;
    bool begun, inner_ended;
    int64_t began_ns; /* by the clock */
    int64_t first;    /* the first sample, or integer scalar, at which time begins */
    double first_float;
    xs_held *held;
    int64_t length, capacity;
    int64_t held_samples;
} xs_paced;

typedef struct {
    xs_op op;
    xs_paced *paced;
} xs_inlet;

static int64_t clock_now(xs_paced *paced, int64_t due_ns)
{
    /* Tuples that were admitted before are processed first; then the source waits. */
    if (paced->op.plan->admitted) due_ns = 0;
    bool alone = paced->op.plan->sources == 1;
    if (paced->pace.clock) {
        int64_t now = alone || !due_ns ? 0 : xs_io_clock(paced->pace.clock, 0);
        if (now < 0) return now;
        if (!alone && due_ns > now + SHARED_PATIENCE_NS) due_ns = now + SHARED_PATIENCE_NS;
        return xs_io_clock(paced->pace.clock, due_ns);
    }
    int64_t now = engine_now_ns(), early = due_ns - now;
    if (early <= 0 || !alone) return now;
    if (early > PATIENCE_NS) early = PATIENCE_NS;
    nanosleep(&(struct timespec){.tv_nsec = early}, NULL);
    return engine_now_ns();
}

/* Nanoseconds of the clock from the beginning of the stream until a tuple is due. */
static double due_after(xs_paced *paced, const xs_slot *tuple, bool is_segment)
{
    const xs_slot *slot = tuple + paced->pace.field;
    if (is_segment) {
        if (!paced->begun) paced->first = slot->seg->start;
        return (double)(seg_stop(slot->seg) - paced->first) * paced->pace.unit_ns;
    }
    if (!paced->begun) paced->first = slot->i, paced->first_float = slot->f;
    if (paced->pace.is_float) return (slot->f - paced->first_float) * paced->pace.unit_ns;
    return ((double)slot->i - (double)paced->first) * paced->pace.unit_ns;
}

/* Holds a tuple until it is due. */
static int32_t hold(xs_paced *paced, int32_t port, const xs_slot *tuple, int64_t due_ns)
{
    const xs_shape *shape = &paced->op.out[port].shape;
    if (paced->length == paced->capacity) {
        int64_t capacity = paced->capacity ? 2 * paced->capacity : 4;
        xs_held *held = realloc(paced->held, (size_t)capacity * sizeof *held);
        if (!held) return op_out_of_memory(&paced->op);
        paced->held = held;
        paced->capacity = capacity;
    }
    xs_held *held = &paced->held[paced->length++];
    held->port = port;
    held->due_ns = due_ns;
    memcpy(held->tuple, tuple, (size_t)shape->fields * sizeof *tuple);
    for (uint64_t left = shape->segments; left; left &= left - 1)
        xs_seg_ref(tuple[__builtin_ctzll(left)].seg);
    return XS_OK;
}

static int32_t inlet_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_paced *paced = ((xs_inlet *)op)->paced;
    double after = due_after(paced, tuple, op->in_shape[port].segments >> paced->pace.field & 1);
    if (!(after > -9e18 && after < 9e18)) return op_fail(op, "a time that no clock reaches");
    if (!paced->begun) {
        paced->began_ns = clock_now(paced, 0);
        if (paced->began_ns < 0) return op_fail(op, "the clock failed");
        paced->begun = true;
    }
    return hold(paced, port, tuple, paced->began_ns + (int64_t)after);
}

/* Runs the inner source until it has emitted something. */
static int32_t fill(xs_paced *paced)
{
    xs_op *inner = paced->inner;
    while (!paced->length) {
        if (paced->inner_ended) return XS_END;
        int64_t before = inner->samples;
        int32_t status = inner->table->produce(inner);
        paced->held_samples = inner->samples - before;
        if (status == XS_END) paced->inner_ended = true;
        else if (status) return status;
        else counter_add(&inner->tuples, 1);
    }
    return XS_OK;
}

static void drop_held(xs_paced *paced)
{
    for (int64_t i = 0; i < paced->length; i++) {
        xs_held *held = &paced->held[i];
        tuple_drop(held->tuple, paced->op.out[held->port].shape.segments);
    }
    paced->length = 0;
    paced->held_samples = 0;
}

static int64_t latest_due(const xs_paced *paced)
{
    int64_t due_ns = INT64_MIN;
    for (int64_t i = 0; i < paced->length; i++)
        if (paced->held[i].due_ns > due_ns) due_ns = paced->held[i].due_ns;
    return due_ns;
}

/* The tuples of one call of the inner source are due, and admitted, together. */
static int32_t paced_produce(xs_op *op)
{
    xs_paced *paced = (xs_paced *)op;
    int32_t status = fill(paced);
    if (status) return status;
    int64_t due_ns = latest_due(paced), now = clock_now(paced, due_ns);
    if (now < 0) return op_fail(op, "the clock failed");
    if (now < due_ns) return XS_WAIT;
    arrivals_note(op, due_ns == AT_ONCE ? 0 : now - due_ns);
    counter_add(&op->samples, paced->held_samples);
    for (int64_t i = 0; i < paced->length && !status; i++)
        status = emit(op, paced->held[i].port, paced->held[i].tuple);
    drop_held(paced);
    return status;
}

static void paced_destroy(xs_op *op)
{
    xs_paced *paced = (xs_paced *)op;
    drop_held(paced);
    free(paced->held);
}

/* Tuples are saved that the inner source counts as emitted; one with a position emits them again. */
static void paced_save(xs_op *op, xs_image *image)
{
    const xs_paced *paced = (xs_paced *)op;
    int64_t length = paced->inner->table->save ? paced->length : 0;
    save_int(image, paced->inner_ended);
    save_int(image, length ? paced->held_samples : 0);
    save_int(image, length);
    for (int64_t i = 0; i < length; i++) {
        save_int(image, paced->held[i].port);
        save_tuple(image, paced->held[i].tuple, &op->out[paced->held[i].port].shape);
    }
}

/* Tuples that were held are due at once, and time begins again with the next one: so the times of the
 * image are not compared with those of the source, and nothing in it can make the source wait. */
static bool paced_load(xs_op *op, xs_stored *stored)
{
    xs_paced *paced = (xs_paced *)op;
    int64_t length, port;
    if (!load_flag(stored, &paced->inner_ended) ||
        !load_range(stored, &paced->held_samples, 0, INDEX_END) || !load_count(stored, 8, &length))
        return false;
    for (int64_t i = 0; i < length; i++) {
        xs_slot tuple[MAX_FIELDS];
        if (!load_range(stored, &port, 0, op->outs - 1)) return false;
        if (!load_tuple(stored, (int32_t)port, tuple)) return false;
        int32_t status = hold(paced, (int32_t)port, tuple, AT_ONCE);
        tuple_drop(tuple, op->out[port].shape.segments);
        if (status) return load_refused(stored, "no memory is left");
    }
    return length || !paced->held_samples || load_refused(stored, "it counts samples that it does not hold");
}

static const xs_op_table paced_table = {
    .produce = paced_produce, .destroy = paced_destroy, .save = paced_save, .load = paced_load};
static const xs_op_table inlet_table = {.process = inlet_process, .save = save_nothing};

xs_op *xs_op_paced(xs_plan *plan, xs_op *inner, xs_pace pace)
{
    xs_paced *paced = op_new(plan, sizeof *paced, &paced_table);
    if (!paced || !arrivals_measure(&paced->op)) return NULL;
    paced->inner = inner;
    paced->pace = pace;
    inner->driven = true;
    return &paced->op;
}

xs_op *xs_op_paced_inlet(xs_op *paced)
{
    xs_inlet *inlet = op_new(paced->plan, sizeof *inlet, &inlet_table);
    if (inlet) inlet->paced = (xs_paced *)paced;
    return inlet ? &inlet->op : NULL;
}

int64_t xs_paced_held(xs_op *op) { return ((xs_paced *)op)->held_samples; }
