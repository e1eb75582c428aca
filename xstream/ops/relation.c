/* relation: a keyed table that several streams read and update. It is one operator with one port per
 * use, so that only one thread accesses it at a time. A single use is served in the order of arrival.
 * Several uses are served in the order of a field that does not descend in any of them, and for equal
 * values in the order of the ports. */
#include "buffer.h"
#include "table.h"

typedef struct {
    xs_use use;
    int32_t *key, *field;        /* see xs_use */
    xs_assignment *assignment;
    xs_backlog backlog;
    int64_t last; /* value of the ordering field in the newest tuple */
} xs_relation_port;

typedef struct {
    xs_op op;
    xs_table table;
    xs_relation_port *port;
    int32_t ports;
    bool ordered, ended;
} xs_relation;

static const int64_t *values_of(const xs_relation *relation, int64_t row)
{
    return table_at(&relation->table, row) + relation->table.keys;
}

static void key_of(const xs_relation_port *port, const xs_slot *tuple, int64_t *key)
{
    for (int32_t i = 0; i < port->use.keys; i++) key[i] = tuple[port->key[i]].i;
}

/* Emits a tuple with values of a row appended; zeros if there is no row. */
static int32_t emit_with(xs_relation *relation, int32_t number, const xs_slot *tuple,
                         const int64_t *values)
{
    const xs_relation_port *port = &relation->port[number];
    int32_t at = relation->op.in_shape[number].fields;
    xs_slot joined[MAX_FIELDS];
    memcpy(joined, tuple, (size_t)at * sizeof *joined);
    if (port->use.flagged) joined[at++].i = values != NULL;
    for (int32_t i = 0; i < port->use.fields; i++) joined[at++].i = values ? values[port->field[i]] : 0;
    return emit(&relation->op, number, joined);
}

/* -- lookups --------------------------------------------------------------------------------- */

static int32_t look_up(xs_relation *relation, int32_t number, const xs_slot *tuple)
{
    const xs_relation_port *port = &relation->port[number];
    int64_t key[MAX_FIELDS];
    key_of(port, tuple, key);
    int64_t row = table_find(&relation->table, key);
    if (row < 0 && port->use.missing == XS_MISSING_DROP) return XS_OK;
    if (row < 0 && port->use.missing == XS_MISSING_ERROR)
        return op_fail(&relation->op, "no row has the key of the tuple, %lld%s", (long long)key[0],
                       port->use.keys > 1 ? " and so on" : "");
    return emit_with(relation, number, tuple, row < 0 ? NULL : values_of(relation, row));
}

/* -- updates --------------------------------------------------------------------------------- */

static double real_of(const xs_assignment *assignment, xs_slot x)
{
    return assignment->from_whole ? (double)x.i : x.f;
}

/* For min and max, the first value of a new row is set without a comparison. */
static bool assign(const xs_assignment *assignment, xs_slot *value, xs_slot x, bool fresh)
{
    int32_t how = fresh && assignment->how != XS_ASSIGN_ADD ? XS_ASSIGN_SET : assignment->how;
    if (assignment->real) {
        double number = real_of(assignment, x);
        switch (how) {
        case XS_ASSIGN_ADD: value->f += number; break;
        case XS_ASSIGN_MIN: value->f = number < value->f || number != number ? number : value->f; break;
        case XS_ASSIGN_MAX: value->f = number > value->f || number != number ? number : value->f; break;
        default: value->f = number;
        }
        return true;
    }
    switch (how) {
    case XS_ASSIGN_ADD: return !__builtin_add_overflow(value->i, x.i, &value->i);
    case XS_ASSIGN_MIN: value->i = x.i < value->i ? x.i : value->i; break;
    case XS_ASSIGN_MAX: value->i = x.i > value->i ? x.i : value->i; break;
    default: value->i = x.i;
    }
    return true;
}

static int32_t update_row(xs_relation *relation, const xs_relation_port *port, const xs_slot *tuple,
                          int64_t *values, bool fresh)
{
    for (int32_t i = 0; i < port->use.assignments; i++) {
        const xs_assignment *assignment = &port->assignment[i];
        xs_slot x = assignment->field >= 0 ? tuple[assignment->field] : assignment->constant;
        if (!assign(assignment, (xs_slot *)values + assignment->value, x, fresh))
            return op_fail(&relation->op, "a sum of whole numbers does not fit into 64 bits");
    }
    return XS_OK;
}

static int32_t delete_row(xs_relation *relation, int32_t number, const xs_slot *tuple,
                          const int64_t *key)
{
    int64_t row = table_find(&relation->table, key), values[MAX_FIELDS];
    if (row < 0) return emit_with(relation, number, tuple, NULL);
    memcpy(values, values_of(relation, row),
           (size_t)(relation->table.words - relation->table.keys) * sizeof *values);
    table_remove(&relation->table, row);
    return emit_with(relation, number, tuple, values);
}

static int32_t update(xs_relation *relation, int32_t number, const xs_slot *tuple)
{
    const xs_relation_port *port = &relation->port[number];
    xs_table *table = &relation->table;
    int64_t key[MAX_FIELDS], before = table->count;
    key_of(port, tuple, key);
    if (port->use.removes == XS_REMOVE_ALWAYS ||
        (port->use.removes >= 0 && tuple[port->use.removes].i))
        return delete_row(relation, number, tuple, key);
    int64_t row = table_add(table, key);
    if (row < 0) return op_out_of_memory(&relation->op);
    int64_t *values = table_at(table, row) + table->keys;
    if (row == before) memset(values, 0, (size_t)(table->words - table->keys) * sizeof *values);
    int32_t status = update_row(relation, port, tuple, values, row == before);
    return status ? status : emit_with(relation, number, tuple, values);
}

static int32_t serve(xs_relation *relation, int32_t number, const xs_slot *tuple)
{
    return relation->port[number].use.updates ? update(relation, number, tuple)
                                              : look_up(relation, number, tuple);
}

/* -- order ----------------------------------------------------------------------------------- */

static int64_t front_value(const xs_relation *relation, int32_t number)
{
    const xs_relation_port *port = &relation->port[number];
    return backlog_front(&port->backlog, &relation->op.in_shape[number])[port->use.order].i;
}

/* True if no tuple that arrives later can precede one with `value` on this port. */
static bool is_next(const xs_relation *relation, int32_t number, int64_t value)
{
    if (relation->ended) return true;
    for (int32_t i = 0; i < relation->ports; i++) {
        const xs_relation_port *other = &relation->port[i];
        if (i < number ? other->last <= value : other->last < value) return false;
    }
    return true;
}

static int32_t serve_in_order(xs_relation *relation)
{
    for (;;) {
        int32_t first = -1;
        int64_t least = INT64_MAX;
        for (int32_t i = 0; i < relation->ports; i++) {
            if (!relation->port[i].backlog.length) continue;
            int64_t value = front_value(relation, i);
            if (first < 0 || value < least) {
                first = i;
                least = value;
            }
        }
        if (first < 0 || !is_next(relation, first, least)) return XS_OK;
        xs_backlog *backlog = &relation->port[first].backlog;
        const xs_shape *shape = &relation->op.in_shape[first];
        int32_t status = serve(relation, first, backlog_front(backlog, shape));
        if (status) return status;
        backlog_pop(backlog, shape);
    }
}

static int32_t relation_process(xs_op *op, int32_t number, const xs_slot *tuple)
{
    xs_relation *relation = (xs_relation *)op;
    if (!relation->ordered) return serve(relation, number, tuple);
    xs_relation_port *port = &relation->port[number];
    int64_t value = tuple[port->use.order].i;
    if (value < port->last)
        return op_fail(op, "a tuple with %lld came behind one with %lld: streams that use a relation "
                       "do not descend in its ordering field", (long long)value,
                       (long long)port->last);
    int32_t status = backlog_push(op, &port->backlog, tuple, &op->in_shape[number]);
    if (status) return status;
    port->last = value;
    return serve_in_order(relation);
}

static int32_t relation_finish(xs_op *op)
{
    xs_relation *relation = (xs_relation *)op;
    relation->ended = true;
    return serve_in_order(relation);
}

/* -- construction ---------------------------------------------------------------------------- */

static void relation_destroy(xs_op *op)
{
    xs_relation *relation = (xs_relation *)op;
    for (int32_t i = 0; i < relation->ports; i++) {
        xs_relation_port *port = &relation->port[i];
        if (op->ins) backlog_drop(&port->backlog, &op->in_shape[i]);
        free(port->key);
        free(port->field);
        free(port->assignment);
    }
    free(relation->port);
    table_free(&relation->table);
}

static void relation_save(xs_op *op, xs_image *image)
{
    const xs_relation *relation = (xs_relation *)op;
    table_save(image, &relation->table);
    for (int32_t i = 0; i < relation->ports; i++) {
        save_int(image, relation->port[i].last);
        backlog_save(image, &relation->port[i].backlog, &op->in_shape[i]);
    }
}

/* Its declared contents are replaced. */
static bool relation_load(xs_op *op, xs_stored *stored)
{
    xs_relation *relation = (xs_relation *)op;
    table_free(&relation->table);
    if (!table_load(stored, &relation->table)) return false;
    for (int32_t i = 0; i < relation->ports; i++)
        if (!load_int(stored, &relation->port[i].last) ||
            !backlog_load(stored, op, &relation->port[i].backlog, i))
            return false;
    return true;
}

static const xs_op_table relation_table = {
    .process = relation_process, .finish = relation_finish, .destroy = relation_destroy,
    .save = relation_save, .load = relation_load};

xs_op *xs_op_relation(xs_plan *plan, int32_t keys, int32_t values, int32_t ports, int32_t ordered)
{
    xs_relation_port *port = calloc((size_t)ports + 1, sizeof *port);
    xs_relation *relation = port ? op_new(plan, sizeof *relation, &relation_table) : NULL;
    if (!relation) {
        free(port);
        return NULL;
    }
    for (int32_t i = 0; i < ports; i++) port[i].last = INT64_MIN;
    relation->port = port;
    relation->ports = ports;
    relation->ordered = ordered != 0;
    table_begin(&relation->table, keys, values);
    return &relation->op;
}

static void *copied_array(const void *from, int32_t count, size_t size)
{
    void *copy = malloc(((size_t)count + 1) * size);
    if (copy && count) memcpy(copy, from, (size_t)count * size);
    return copy;
}

int32_t xs_relation_use(xs_op *op, int32_t number, const xs_use *use)
{
    xs_relation_port *port = &((xs_relation *)op)->port[number];
    port->use = *use;
    port->key = copied_array(use->key, use->keys, sizeof *use->key);
    port->field = copied_array(use->field, use->fields, sizeof *use->field);
    port->assignment = copied_array(use->assignment, use->assignments, sizeof *use->assignment);
    return port->key && port->field && port->assignment ? XS_OK : XS_FAILED;
}

int32_t xs_relation_fill(xs_op *op, const int64_t *rows, int64_t count)
{
    xs_table *table = &((xs_relation *)op)->table;
    for (int64_t i = 0; i < count; i++) {
        const int64_t *from = rows + i * table->words;
        int64_t row = table_add(table, from);
        if (row < 0) return XS_FAILED;
        memcpy(table_at(table, row), from, (size_t)table->words * sizeof *from);
    }
    return XS_OK;
}

const int64_t *xs_relation_rows(xs_op *op, int64_t *count)
{
    *count = ((xs_relation *)op)->table.count;
    return ((xs_relation *)op)->table.row;
}
