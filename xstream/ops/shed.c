/* shed: drops tuples while its own queue is too long. The load is the number of queued tuples, or how
 * far the oldest is behind the newest in a time field. */
#include "../engine/saving.h"
#include "operators.h"

typedef struct {
    xs_op op;
    int64_t limit;
    int32_t time;   /* the field that the limit is measured in; -1: in tuples */
    int32_t policy; /* xs_shed_policy */
    int32_t key;    /* XS_SHED_KEY: the key field */
    uint64_t random;
} xs_shed;

/* The load, including the current tuple. */
static int64_t load_of(const xs_shed *shed, const xs_slot *tuple)
{
    const xs_queue *queue = &shed->op.in[0];
    if (shed->time < 0) return queue->length + 1;
    if (!queue->length) return 0;
    int64_t behind;
    return __builtin_sub_overflow(queue_last(queue)[shed->time].i, tuple[shed->time].i, &behind)
               ? INT64_MAX
               : behind;
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

/* A number from 0 to 1: random, or always the same for a key. */
static double drawn(xs_shed *shed, const xs_slot *tuple)
{
    uint64_t from = shed->policy == XS_SHED_KEY ? (uint64_t)tuple[shed->key].i ^ shed->random
                                                : (shed->random += 0x9E3779B97F4A7C15ull);
    return (double)(mixed(from) >> 11) * 0x1p-53;
}

static int32_t shed_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    xs_shed *shed = (xs_shed *)op;
    int64_t load = load_of(shed, tuple);
    if (likely(load <= shed->limit)) return XS_FORWARD;
    switch (shed->policy) {
    case XS_SHED_OLDEST: break;
    case XS_SHED_NEWEST:
        for (; load > shed->limit && op->in[0].length; load = load_of(shed, tuple)) {
            queue_drop_last(&op->in[0]);
            counter_add(&op->dropped, 1);
        }
        return XS_FORWARD;
    default:
        if (drawn(shed, tuple) * (double)load < (double)shed->limit) return XS_FORWARD;
    }
    counter_add(&op->dropped, 1);
    return XS_OK;
}

static void shed_save(xs_op *op, xs_image *image) { save_int(image, (int64_t)((xs_shed *)op)->random); }

static bool shed_load(xs_op *op, xs_stored *stored)
{
    int64_t random;
    if (!load_int(stored, &random)) return false;
    ((xs_shed *)op)->random = (uint64_t)random;
    return true;
}

static const xs_op_table shed_table = {.process = shed_process, .save = shed_save, .load = shed_load};

xs_op *xs_op_shed(xs_plan *plan, int64_t limit, int32_t time, int32_t policy, int32_t key, int64_t seed)
{
    xs_shed *shed = op_new(plan, sizeof *shed, &shed_table);
    if (!shed) return NULL;
    shed->limit = limit;
    shed->time = time;
    shed->policy = policy;
    shed->key = key;
    shed->random = mixed((uint64_t)seed);
    return &shed->op;
}
