/* Feeds: blocks of columns that a reader hands over, and the source that cuts them into tuples. */
#include "intake.h"

struct xs_feed {
    xs_monitor monitor;
    xs_intake *intake; /* a socket to receive from; NULL: a reader hands over blocks */
    int32_t columns;
    int64_t capacity, head, length;
    bool closed, failed, abandoned;
    _Atomic int64_t refs;
    xs_feed_block ring[];
};

enum { PATIENCE_NS = 5000000 }; /* between two checks for a stop of the plan */

xs_feed *xs_feed_new(int32_t columns, int64_t capacity)
{
    xs_feed *feed = calloc(1, sizeof *feed + (size_t)capacity * sizeof *feed->ring);
    if (!feed) return NULL;
    monitor_init(&feed->monitor);
    feed->columns = columns;
    feed->capacity = capacity;
    atomic_init(&feed->refs, 1);
    return feed;
}

static void drop_columns(xs_seg **column, int32_t columns)
{
    for (int32_t i = 0; i < columns; i++) {
        if (column[i]) xs_seg_drop(column[i]);
        column[i] = NULL;
    }
}

static void drop_blocks(xs_feed *feed)
{
    for (; feed->length; feed->length--) {
        drop_columns(feed->ring[feed->head].column, feed->columns);
        feed->head = (feed->head + 1) % feed->capacity;
    }
}

void xs_feed_drop(xs_feed *feed)
{
    if (atomic_fetch_sub_explicit(&feed->refs, 1, memory_order_acq_rel) != 1) return;
    drop_blocks(feed);
    if (feed->intake) xs_intake_drop(feed->intake);
    monitor_destroy(&feed->monitor);
    free(feed);
}

void xs_feed_receive(xs_feed *feed, xs_intake *intake) { feed->intake = intake; }

int32_t xs_feed_push(xs_feed *feed, xs_seg **columns, int64_t arrived_ns, int64_t patience_ns)
{
    monitor_lock(&feed->monitor);
    if (feed->length == feed->capacity && !feed->abandoned)
        monitor_wait(&feed->monitor, patience_ns);
    int32_t outcome = feed->abandoned ? 2 : feed->length == feed->capacity;
    if (!outcome) {
        xs_feed_block *block = &feed->ring[(feed->head + feed->length) % feed->capacity];
        *block = (xs_feed_block){.arrived_ns = arrived_ns};
        memcpy(block->column, columns, (size_t)feed->columns * sizeof *columns);
        if (!feed->length++) monitor_tell(&feed->monitor);
    }
    monitor_unlock(&feed->monitor);
    return outcome;
}

void xs_feed_close(xs_feed *feed, int32_t failed)
{
    monitor_lock(&feed->monitor);
    feed->closed = true;
    feed->failed = failed;
    monitor_tell(&feed->monitor);
    monitor_unlock(&feed->monitor);
}

void xs_feed_abandon(xs_feed *feed)
{
    monitor_lock(&feed->monitor);
    feed->abandoned = feed->closed = true;
    drop_blocks(feed);
    monitor_tell(&feed->monitor);
    monitor_unlock(&feed->monitor);
}

/* -- the source ---------------------------------------------------------------------------- */

typedef struct {
    xs_op op;
    xs_feed *feed;
    xs_layout layout;
    int64_t window; /* 0: a tuple per message */
    bool partial;
    xs_feed_block block;           /* the block being cut; column[0] is NULL if there is none */
    int64_t at, width;             /* samples of the block used so far; all of them */
    xs_seg *begun[MAX_FIELDS];     /* a window that continues in the next block */
    int64_t begun_width, position; /* position: the index of the next sample to be emitted */
} xs_feed_source;

/* A block from the ring; XS_WAIT if there is none yet. */
static int32_t read_block(xs_feed_source *source, int64_t patience_ns)
{
    xs_feed *feed = source->feed;
    int32_t status = XS_OK;
    monitor_lock(&feed->monitor);
    if (!feed->length && !feed->closed && patience_ns) monitor_wait(&feed->monitor, patience_ns);
    if (feed->length) {
        source->block = feed->ring[feed->head];
        feed->head = (feed->head + 1) % feed->capacity;
        if (feed->length-- == feed->capacity) monitor_tell(&feed->monitor);
    } else {
        status = !feed->closed ? XS_WAIT : feed->failed ? XS_FAILED : XS_END;
    }
    monitor_unlock(&feed->monitor);
    return status;
}

/* The next block, of `wanted` samples or more if it is received. */
static int32_t next_block(xs_feed_source *source, int64_t wanted)
{
    xs_intake *intake = source->feed->intake;
    /* A plan with other sources serves them meanwhile; admitted tuples are processed first. */
    const xs_plan *plan = source->op.plan;
    int64_t patience_ns = plan->sources == 1 && !plan->admitted ? PATIENCE_NS : 0;
    int32_t status = intake ? intake_receive(intake, wanted, patience_ns, &source->block)
                            : read_block(source, patience_ns);
    if (status == XS_FAILED)
        return op_fail(&source->op, "%s", intake && intake->message[0] ? intake->message
                                                                       : "the reader failed");
    if (status) return status;
    source->at = 0;
    source->width = source->block.column[0]->width;
    return XS_OK;
}

static void block_done(xs_feed_source *source)
{
    drop_columns(source->block.column, source->feed->columns);
}

/* Adds up to `wanted` samples of the block to the current window. */
static int32_t take_samples(xs_feed_source *source, int64_t wanted)
{
    int64_t left = source->width - source->at, width = wanted < left ? wanted : left;
    for (int32_t i = 0; i < source->feed->columns; i++) {
        xs_seg *column = source->block.column[i];
        xs_seg *part = xs_seg_subseg(column, column->start + source->at, width);
        xs_seg *before = source->begun[i];
        if (part && before) {
            xs_seg *joined = xs_seg_append(before, part);
            xs_seg_drop(part);
            part = joined;
        }
        if (!part) return op_out_of_memory(&source->op);
        if (before) xs_seg_drop(before);
        source->begun[i] = part;
    }
    source->begun_width += width;
    source->at += width;
    return XS_OK;
}

static void note_arrival(xs_feed_source *source)
{
    const xs_feed_block *block = &source->block;
    if (!block->arrived_ns || !arrivals_measure(&source->op)) return;
    int64_t message = block->arrivals ? (source->at - 1) / block->step : 0;
    int64_t arrived_ns = block->arrivals ? block->arrivals[message] : block->arrived_ns;
    arrivals_note(&source->op, engine_now_ns() - arrived_ns);
}

static int32_t emit_window(xs_feed_source *source)
{
    xs_op *op = &source->op;
    xs_slot tuple[MAX_FIELDS];
    for (int32_t i = 0; i < source->feed->columns; i++) tuple[i].seg = source->begun[i];
    source->position += source->begun_width;
    counter_add(&op->samples, source->begun_width);
    source->begun_width = 0;
    int32_t status = XS_OK;
    if (source->layout == XS_AS_FIELDS) status = emit(op, 0, tuple);
    for (int32_t i = 0; source->layout == XS_AS_STREAMS && i < op->outs && !status; i++)
        status = emit(op, i, tuple + i);
    drop_columns(source->begun, source->feed->columns);
    return status;
}

/* Whether the block goes on where the begun window ends. */
static bool continues(const xs_feed_source *source)
{
    const xs_seg *begun = source->begun[0], *next = source->block.column[0];
    return source->at || (!source->block.fresh && seg_stop(begun) == next->start);
}

static int32_t produce_window(xs_op *op)
{
    xs_feed_source *source = (xs_feed_source *)op;
    for (;;) {
        if (!source->block.column[0]) {
            int32_t status = next_block(source, source->window - source->begun_width);
            if (status == XS_END && source->begun_width && source->partial) break;
            if (status) return status;
        }
        if (source->begun_width && !continues(source)) {
            if (source->partial) break; /* the block is for the next window */
            drop_columns(source->begun, source->feed->columns);
            source->begun_width = 0;
        }
        if (!source->begun_width && source->feed->intake)
            source->position = source->block.column[0]->start + source->at;
        int64_t window = source->window ? source->window : source->block.step;
        int32_t status = take_samples(source, window - source->begun_width);
        if (status) return status;
        bool complete = source->begun_width == window;
        if (complete) note_arrival(source);
        if (source->at == source->width) block_done(source);
        if (complete) break;
    }
    return emit_window(source);
}

static int32_t produce_row(xs_op *op)
{
    xs_feed_source *source = (xs_feed_source *)op;
    while (!source->block.column[0] || source->at == source->width) {
        block_done(source);
        int32_t status = next_block(source, 1);
        if (status) return status;
    }
    xs_slot tuple[MAX_FIELDS];
    for (int32_t i = 0; i < source->feed->columns; i++) {
        const xs_seg *column = source->block.column[i];
        const char *data = column->block->data + column->offset;
        memcpy(&tuple[i], data + source->at * (int64_t)sizeof *tuple, sizeof *tuple);
    }
    source->at++;
    note_arrival(source);
    source->position++;
    counter_add(&op->samples, 1);
    return emit(op, 0, tuple);
}

static void source_destroy(xs_op *op)
{
    xs_feed_source *source = (xs_feed_source *)op;
    block_done(source);
    drop_columns(source->begun, source->feed->columns);
    xs_feed_abandon(source->feed);
    xs_feed_drop(source->feed);
}

static const xs_op_table window_table = {.produce = produce_window, .destroy = source_destroy};
static const xs_op_table row_table = {.produce = produce_row, .destroy = source_destroy};

xs_op *xs_op_feed_source(xs_plan *plan, xs_feed *feed, int32_t layout, int64_t window,
                         int32_t partial)
{
    bool rows = layout == XS_AS_ROWS;
    xs_feed_source *source = op_new(plan, sizeof *source, rows ? &row_table : &window_table);
    if (!source) return NULL;
    plan->patient = true;
    atomic_fetch_add_explicit(&feed->refs, 1, memory_order_relaxed);
    source->feed = feed;
    source->layout = (xs_layout)layout;
    source->window = window;
    source->partial = partial;
    return &source->op;
}

void xs_feed_source_begin(xs_op *op, int64_t start) { ((xs_feed_source *)op)->position = start; }
int64_t xs_feed_source_position(xs_op *op) { return ((xs_feed_source *)op)->position; }
