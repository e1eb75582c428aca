/* Shared by operators and schedulers: operators, edges, queues, and passing a tuple. */
#ifndef XS_ENGINE_H
#define XS_ENGINE_H
#include "../sigseg/internal.h"
#include "plan.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum { MAX_FIELDS = 64 };

struct xs_image;
struct xs_stored;

typedef struct {
    int32_t (*process)(xs_op *op, int32_t port, const xs_slot *tuple);
    int32_t (*produce)(xs_op *op); /* sources: emit one tuple, or XS_END, or XS_WAIT */
    /* The same for up to `most` tuples at once: consecutive rows of slots without segments. They are
     * processed at once by consumers that can do so; see emit_many. */
    int32_t (*produce_many)(xs_op *op, int64_t most, int64_t *made);
    int32_t (*process_many)(xs_op *op, int32_t port, const xs_slot *rows, int64_t count);
    /* Whether tuples of a port would now only be kept: nothing would be emitted. */
    bool (*absorbs)(const xs_op *op, int32_t port);
    int32_t (*finish)(xs_op *op);  /* the streams have ended and everything is processed */
    void (*destroy)(xs_op *op);
    /* Operators without state: a copy of the operator, for a part of the plan that another thread
     * runs. NULL: no memory. `stateless` decides if only some operators of the kind have no state. */
    xs_op *(*clone)(xs_op *op, xs_plan *plan);
    bool (*stateless)(const xs_op *op);
    /* Operators whose state only decides what they emit: a second half, without state, for a later part.
     * From then on the operator emits orders, and the half the tuples that it is ordered to, of which
     * its `order_size` says the number. NULL: no memory. */
    xs_op *(*halve)(xs_op *op, xs_plan *part);
    int64_t (*order_size)(const xs_slot *order);
    /* Checkpoints (saving.h): writes the state into an image, and reads it into a new operator. Without
     * `save` an operator cannot be saved; one without state has save_nothing, and no `load`. */
    void (*save)(xs_op *op, struct xs_image *image);
    bool (*load)(xs_op *op, struct xs_stored *stored);
} xs_op_table;

/* Counters that one thread writes, and that any thread may read during a run (snapshot.c): every access
 * of the others, and every change, is atomic. No bus is locked. */
static inline void counter_set(int64_t *counter, int64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}
static inline void counter_add(int64_t *counter, int64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    /* One instruction, as for a plain counter; compilers make three of an atomic load and store. */
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(n) : "cc");
#else
    counter_set(counter, *counter + n);
#endif
}
static inline int64_t counter_get(const int64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Copies of tuples that wait for one input port, in a ring buffer that grows. */
typedef struct xs_queue {
    xs_op *op;
    int32_t port;
    bool ready; /* is in the plan's list of queues with tuples */
    struct xs_queue *next_ready;
    xs_slot *ring;
    int64_t capacity, head; /* in tuples; capacity is a power of two */
    int64_t length, peak;   /* counters */
} xs_queue;

typedef struct xs_ring xs_ring;
typedef struct xs_fan xs_fan;
typedef struct xs_under_way xs_under_way;

typedef struct {
    xs_op *to;
    xs_queue *queue;
    int32_t port;
    bool direct;   /* called by reference; else queued */
    bool carried;  /* by the fan of an edge before it */
    xs_ring *ring; /* if another thread runs `to`: the ring that leads there */
    xs_fan *fan;   /* tuples pass through the ring once for this edge and those behind it */
} xs_edge;

/* A segment, and the number of tuples to make from it. */
enum { ORDER_FIELDS = 2 };
static const xs_shape order_shape = {.fields = ORDER_FIELDS, .segments = 1};

/* Edges from one port to operators of one later part: the tuple is passed over them there. */
struct xs_fan {
    xs_plan *part;
    xs_shape shape;
    int32_t edges;
    xs_edge edge[]; /* direct */
};

typedef struct {
    xs_shape shape;
    int32_t edges;
    bool apart; /* all edges but one lead to operators that may absorb and that the other edges do not
                 * lead to, so that the order between edges does not matter while they absorb */
    xs_edge *edge;
} xs_out;

/* Delays, counted in 32 buckets for each power of two. */
enum { DELAY_BUCKETS = 60 * 32 };
typedef struct {
    int64_t count, worst_ns;
    int64_t bucket[DELAY_BUCKETS];
} xs_delays;

/* Measurements of a source whose tuples have arrival times. */
typedef struct {
    xs_delays lateness, latency;
    int64_t *under_way; /* arrival times of tuples whose results are not complete */
    int64_t length, capacity;
} xs_arrivals;

/* A hop touches only the first cache line, and a timed one the second. */
struct xs_op {
    int32_t (*process)(xs_op *op, int32_t port, const xs_slot *tuple); /* see op_new */
    xs_plan *plan;
    int64_t tuples, samples, emitted;
    xs_op *only;       /* the only successor of port 0, if it is called directly */
    int32_t only_port;
    int32_t measured;  /* the first segment field, whose samples are counted; or -1 */
    int64_t busy_ns;   /* of the timed tuples, weighted by the number each stands for */

    int64_t timed_tuples; /* weighted as well */
    int64_t first_ns;     /* of the first tuple, which may load or compile something */
    int64_t least_ns;     /* of a source: that the quickest timed tuple took */
    const xs_op_table *table;
    xs_op *original;   /* of a clone, and of a half */
    int32_t id, ins, outs;
    bool ended;        /* a source without more tuples */
    bool ready;
    bool driven;       /* a source driven by another source, not admitted by a scheduler */
    xs_op *within;     /* the region that it is a member of, which is what the engine runs; or NULL */
    xs_out *out;
    xs_queue *in;      /* one per port */
    xs_shape *in_shape;
    xs_op *next_ready, *previous_ready; /* in the plan's list of operators with tuples */
    xs_cost *cost;     /* in profiled runs */
    xs_arrivals *arrivals; /* of a source whose tuples have arrival times */
    xs_op **clone;     /* by part of the plan: its clone there, or NULL */
    int64_t dropped;   /* tuples or rows that it dropped: too late, or too many */
    int32_t clones;    /* parts before its own */
    xs_op *half;       /* the second half, in a later part */
    int64_t clone_ns;  /* that its clones and those behind it need for a tuple, or a half for each of an
                        * order; estimated when the plan is cut; 0: it has none */
    int32_t place;     /* in the plan's order */
};

typedef struct xs_op_chunk xs_op_chunk;

/* Windows in and out can fill the L1 cache, and evict what else a tuple needs, line by line. So the first
 * line has all that most tuples need. */
struct xs_plan {
    _Alignas(64) bool slow_pass; /* any of the next three */
    bool copies;    /* copy-always: passing a segment copies it */
    bool timed;     /* what runs is */
    bool spilled;   /* stack limit reached: tuples of direct edges queue; none may overtake them */
    bool many;      /* sources emit several tuples at once */
    bool profiled;
    bool overdue;
    _Atomic int32_t stop;
    int32_t until_look; /* tuples until the clock is read */
    uintptr_t stack_floor; /* the stack limit of direct calls */
    /* The tuple from which the called operator may take segments, leaving NULL: the caller emits it
     * once, to one operator, and does not use it afterwards. NULL: none. */
    xs_slot *given;
    xs_manager *manager;
    int64_t until_timed; /* tuples until the next timed one */
    int64_t admitted;    /* tuples of the current burst and source */
    int64_t child_ns;    /* of a timed tuple */

    int64_t weight, gap; /* tuples that a timed one stands for; between two timed ones on average */
    uint64_t random;     /* state of the random numbers for it */
    int32_t look_every;  /* tuples between two readings of the clock */
    xs_cost child_cost; /* of the operators that the running one has called */
    xs_op **op;
    int32_t ops, capacity;
    xs_op_chunk *chunk;     /* memory of operators, in the order of their creation */
    const struct xs_scheduler *scheduler;
    int64_t tuple_burst; /* 0: no rate control */
    int64_t slice_ns;
    int64_t deadline_ns, looked_ns; /* when to return to Python; when the clock was last read */
    xs_queue *ready_queue_head, *ready_queue_tail; /* least recently dequeued first */
    xs_op *ready_op_head, *ready_op_tail;          /* least recently processed first */
    int64_t queue_bytes, queue_bytes_peak;
    xs_op **order;    /* every operator after those that feed it; sources first */
    int32_t ordered, entries; /* operators; sources among them */
    xs_op **source;
    int32_t sources;
    int32_t finished; /* operators that were notified of the end */
    bool admitting, sources_ended, waiting;
    bool moved;       /* the current burst has tuples */
    bool live;        /* some source measures arrivals */
    _Atomic bool settle; /* return at the next point where no tuple is in flight */
    bool settle_early;   /* even within a burst, if nothing is queued */
    /* Parts: a plan that several threads run is cut into several, with a ring between neighbours.
     * The first part has the sources and owns the others. */
    int32_t part, parts;
    xs_plan **later;  /* in the first: the other parts */
    xs_ring *ring_in, *ring_out;
    xs_under_way *arrived; /* with the burst that is being taken */
    bool cut_off;     /* an earlier part has failed: operators are not finished */
    int32_t finish_below, finish_told; /* places: an earlier part is about to finish this one */
    bool patient;     /* sources wait for other threads: sleeps may become longer */
    int64_t nap_ns;
    bool cut_short;         /* the current burst: its source, tuples so far, status of the others */
    int32_t admit_source, admit_overall;
    /* The first failure: operator, port and tuple. */
    xs_op *failed_op;
    int32_t failed_port;
    int32_t failed_fields;
    uint64_t failed_segments;
    xs_slot failed_tuple[MAX_FIELDS];
    bool out_of_memory;
    char message[512];
};

/* A scheduler chooses among the queues with tuples. */
typedef struct xs_scheduler {
    /* Process a waiting tuple; XS_END if there is none. */
    int32_t (*step)(xs_plan *plan);
    bool by_operator; /* ready operators instead of ready queues */
    bool direct;      /* successors are called by reference */
} xs_scheduler;

int64_t engine_now_ns(void);

/* Measuring busy times must cost little: one in 64 of the tuples that are admitted or dequeued is
 * timed, with all operators that it calls; one in 256 where they take less than some microseconds, one
 * in 1024 where they are admitted several at a time, and one in 8 of slow tuples, which are few; and each
 * of an operator's first tuples, so that every operator that has run has a time. */
enum { FIRST_TIMED = 8 };
void plan_draw_timing(xs_plan *plan);
static inline void plan_set_timing(xs_plan *plan, bool timed, int64_t weight)
{
    plan->timed = timed;
    plan->weight = weight;
    plan->slow_pass = timed || plan->copies || plan->spilled;
}
static inline void plan_sample_timing(xs_plan *plan)
{
    if (unlikely(--plan->until_timed < 0 || plan->timed)) plan_draw_timing(plan);
}

/* Is it time to return to Python? The clock is read more often the longer tuples take. */
bool plan_look_up(xs_plan *plan);
static inline bool plan_overdue(xs_plan *plan)
{
    return unlikely(--plan->until_look <= 0) ? plan_look_up(plan) : plan->overdue;
}

/* op.c */
void *op_new(xs_plan *plan, size_t size, const xs_op_table *table);
void op_chunks_free(xs_plan *plan);
int32_t op_fail(xs_op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
int32_t op_out_of_memory(xs_op *op);
void plan_out_of_memory(xs_plan *plan);
int32_t op_outside(xs_op *op, int64_t start, int64_t width); /* of the indices of a signal */
int64_t op_busy_ns(const xs_op *op);
int64_t op_steady_ns(const xs_op *op); /* the same, as if the first tuple had taken no longer */
void *op_copy(xs_op *op, xs_plan *plan, size_t size); /* the whole struct, for clone */
int32_t process_timed(xs_op *op, int32_t port, const xs_slot *tuple);
/* In a part that is not the operator's own: the first failure of `plan`. */
int32_t plan_failed_at(xs_plan *plan, xs_op *op, int32_t port, const xs_slot *tuple);
int32_t pass_failed(xs_op *op, int32_t port, const xs_slot *tuple);
/* Segments that were taken are already NULL. */
static inline void tuple_drop(const xs_slot *tuple, uint64_t segments)
{
    for (; segments; segments &= segments - 1) {
        xs_seg *seg = tuple[__builtin_ctzll(segments)].seg;
        if (likely(seg)) xs_seg_drop(seg);
    }
}

/* arrivals.c */
bool arrivals_measure(xs_op *op); /* from now on; false without memory */
/* A tuple that arrived, or was due, this long ago is about to be emitted. */
void arrivals_note(xs_op *op, int64_t late_ns);
/* All admitted tuples have been processed. */
void arrivals_settle(xs_plan *plan);
/* The same in two steps, for a plan in parts: the first part takes the arrivals in flight (NULL if there
 * are none), and the last part settles them when the tuples have reached it. */
xs_under_way *arrivals_take(xs_plan *plan);
void arrivals_settle_taken(xs_under_way *taken); /* and frees it */

/* cost.c: the costs between the two calls are charged to an operator, without those of operators it
 * calls */
typedef struct {
    xs_cost before, outer_child;
    int64_t begin_ns, outer_child_ns;
} xs_cost_mark;

void cost_enter(xs_plan *plan, xs_cost_mark *mark);
void cost_leave(xs_op *op, const xs_cost_mark *mark);
void cost_charge(xs_plan *plan, xs_op *op, const xs_cost_mark *mark); /* on the thread of `plan`, for op */
/* The same for passing a tuple to an operator, whose time is charged to the operator too. */
static inline void cost_leave_passing(xs_op *op, const xs_cost_mark *mark)
{
    counter_add(&op->busy_ns, engine_now_ns() - mark->begin_ns);
    cost_leave(op, mark);
}

/* queue.c */
int32_t queue_push(xs_queue *queue, const xs_slot *tuple, const xs_shape *shape);
int32_t queue_push_owned(xs_queue *queue, const xs_slot *tuple); /* takes over the counts */
/* Appends without marking the queue as ready; takes over the counts. False: no memory. */
bool queue_restore(xs_queue *queue, const xs_slot *tuple);
bool queue_pop(xs_queue *queue, xs_slot *tuple); /* the counts go to the caller */
void queue_clear(xs_queue *queue);
const xs_slot *queue_last(const xs_queue *queue); /* the newest tuple; there must be one */
void queue_drop_last(xs_queue *queue);
int32_t queue_run_one(xs_queue *queue); /* pops, processes, drops */
int32_t queue_run_owned(xs_queue *queue, xs_slot *tuple); /* as if it were the result of a pop */
void queue_mark_ready(xs_queue *queue);
xs_queue *ready_queue_take(xs_plan *plan);
void ready_op_remove(xs_op *op);
int32_t op_run_waiting(xs_op *op); /* tuples that wait now, not those that are queued meanwhile */

/* ring.c: from a part of a plan to the next. One producer thread, one consumer thread. */
typedef enum {
    RING_TUPLE,
    RING_FAN,    /* a tuple for several operators */
    RING_BURST,  /* the burst of tuples is complete */
    RING_FINISH, /* one thread would now finish all operators before a place */
    RING_END,    /* no more tuples follow */
    RING_FAILED, /* the same, because an operator has failed */
    RING_SETTLE, /* the producer has settled, and the consumer is to */
    RING_NO_MEMORY, /* for the segments of a tuple, which are dropped; `to` has a queue */
    RING_EMPTY
} xs_ring_kind;

xs_ring *ring_new(xs_plan *giver);
void ring_free(xs_ring *ring); /* with what is in it */
/* The clone that runs here in place of edge->to while the thread there has enough to do; or NULL. */
xs_op *ring_stand_in(const xs_edge *edge, const xs_slot *tuple);
int32_t ring_pass(xs_ring *ring, xs_queue *to, const xs_slot *tuple, const xs_shape *shape);
int32_t ring_pass_fan(xs_ring *ring, xs_fan *fan, const xs_slot *tuple);
/* The same, taking over the counts. */
void ring_pass_owned(xs_ring *ring, xs_queue *to, const xs_slot *tuple);
void ring_pass_fan_owned(xs_ring *ring, xs_fan *fan, const xs_slot *tuple);
/* Puts a mark between the tuples; the end of a burst without tuples or arrivals is left out. */
void ring_mark(xs_ring *ring, xs_ring_kind kind);
void ring_mark_burst(xs_ring *ring, xs_under_way *arrivals);
void ring_mark_finish(xs_ring *ring, int32_t place);
void ring_wake(xs_ring *ring); /* the producer pauses */
/* What a tuple is for. */
typedef union {
    xs_queue *queue;
    xs_fan *fan;
} xs_ring_to;
/* The next tuple, whose counts go to the caller, or mark; with a mark comes what it was given, in
 * tuple[0].i. Waits at most until the deadline. */
xs_ring_kind ring_take(xs_ring *ring, xs_ring_to *to, xs_slot *tuple, int64_t deadline_ns);
/* Closes the ring for both sides: its tuples, and those put into it later, are dropped. */
void ring_abandon(xs_ring *ring);
/* How full it is, from 0 to 1. From any thread. */
double ring_fill(xs_ring *ring);

static inline void op_counts(xs_op *op, const xs_slot *tuple)
{
    counter_add(&op->tuples, 1);
    counter_add(&op->samples, op->measured >= 0 ? tuple[op->measured].seg->width : 1);
}

enum { MANY = 64 }; /* the largest number of tuples admitted at once */
int32_t emit_many(xs_op *op, const xs_slot *rows, int64_t count); /* on port 0 */

/* Passes a tuple over an edge: by reference if possible, else through the queue. */
int32_t pass(const xs_edge *edge, const xs_slot *tuple, const xs_shape *shape);
/* Passes a tuple of port 0 to op->only. */
int32_t pass_to_only(const xs_op *op, const xs_slot *tuple);

/* Emits a tuple that the caller continues to use. */
static inline int32_t emit(xs_op *op, int32_t port, const xs_slot *tuple)
{
    const xs_out *out = &op->out[port];
    counter_add(&op->emitted, 1);
    for (int32_t i = 0; i < out->edges; i++) {
        op->plan->given = NULL;
        int32_t status = pass(&out->edge[i], tuple, &out->shape);
        if (unlikely(status)) return status;
    }
    return XS_OK;
}

/* Emits a tuple whose segments may be taken: `tuple` if the caller owns them alone, else NULL. Of
 * several successors only the last may take them, after the others have processed them. */
static inline int32_t emit_giving(xs_op *op, int32_t port, const xs_slot *tuple, xs_slot *given)
{
    xs_plan *plan = op->plan;
    int32_t status = XS_OK;
    counter_add(&op->emitted, 1);
    if (likely(op->only && !port)) {
        plan->given = given;
        status = pass_to_only(op, tuple);
        plan->given = NULL;
        return status;
    }
    const xs_out *out = &op->out[port];
    for (int32_t i = 0; i < out->edges && likely(!status); i++) {
        plan->given = i + 1 == out->edges ? given : NULL;
        status = pass(&out->edge[i], tuple, &out->shape);
    }
    plan->given = NULL;
    return status;
}
#endif
