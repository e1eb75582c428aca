/* partition: divides a stream by a key; equal keys go to one output. */
#include "../engine/saving.h"
#include "operators.h"

typedef struct {
    xs_op op;
    int32_t field;
} xs_partition;

/* Hashes the key, so that neighbouring and regularly spaced keys spread evenly over the outputs. */
static uint64_t mixed(uint64_t key)
{
    key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
    key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
    return key ^ (key >> 31);
}

static int32_t partition_process(xs_op *op, int32_t port, const xs_slot *tuple)
{
    uint64_t key = (uint64_t)tuple[((const xs_partition *)op)->field].i;
    return emit(op, (int32_t)(mixed(key) % (uint64_t)op->outs), tuple);
}

static xs_op *partition_clone(xs_op *op, xs_plan *plan)
{
    return op_copy(op, plan, sizeof(xs_partition));
}

static const xs_op_table partition_table = {
    .process = partition_process, .clone = partition_clone, .save = save_nothing};

xs_op *xs_op_partition(xs_plan *plan, int32_t field)
{
    xs_partition *partition = op_new(plan, sizeof *partition, &partition_table);
    if (partition) partition->field = field;
    return partition ? &partition->op : NULL;
}
