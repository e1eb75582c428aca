/* What all intakes share: the connection, the columns of blocks, times of arrival. */
#define _GNU_SOURCE
#include "intake.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

bool intake_init(xs_intake *intake, const xs_intake_table *table, xs_manager *manager,
                 const xs_record *record)
{
    intake->table = table;
    intake->fd = -1;
    intake->manager = manager;
    intake->record = *record;
    memcpy(intake->field, record->field, (size_t)record->fields * sizeof *record->field);
    intake->record.field = intake->field;
    const xs_record_field *first = intake->field;
    intake->plain = record->fields == 1 && first->kind == XS_PLAIN &&
                    (int64_t)first->bytes * record->samples == record->bytes;
    monitor_init(&intake->monitor);
    manager_hold(manager);
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    intake->clock_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - engine_now_ns();
    return true;
}

void xs_intake_drop(xs_intake *intake)
{
    intake->table->destroy(intake);
    monitor_destroy(&intake->monitor);
    xs_manager_drop(intake->manager);
    free(intake);
}

/* -- the connection ------------------------------------------------------------------------ */

static void set_link(xs_intake *intake, xs_link link)
{
    monitor_lock(&intake->monitor);
    atomic_store_explicit(&intake->link, (int32_t)link, memory_order_release);
    monitor_tell(&intake->monitor);
    monitor_unlock(&intake->monitor);
}

static xs_link link_of(xs_intake *intake)
{
    return (xs_link)atomic_load_explicit(&intake->link, memory_order_acquire);
}

void xs_intake_open(xs_intake *intake, int32_t fd)
{
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on); /* without: when it was read */
    setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    intake->fd = fd;
    set_link(intake, XS_LINK_UP);
}

int32_t xs_intake_wait(xs_intake *intake, int64_t patience_ns)
{
    monitor_lock(&intake->monitor);
    if (link_of(intake) == XS_LINK_UP) monitor_wait(&intake->monitor, patience_ns);
    int32_t link = (int32_t)link_of(intake);
    if (link != XS_LINK_UP && link != XS_LINK_ENDED && link != XS_LINK_FAILED)
        atomic_store_explicit(&intake->link, XS_LINK_NONE, memory_order_release);
    monitor_unlock(&intake->monitor);
    return link;
}

void xs_intake_close(xs_intake *intake, int32_t failed)
{
    set_link(intake, failed ? XS_LINK_FAILED : XS_LINK_ENDED);
}

int32_t xs_intake_error(const xs_intake *intake) { return intake->error; }
const char *xs_intake_message(const xs_intake *intake) { return intake->message; }

void xs_intake_counters(const xs_intake *intake, int64_t *out)
{
    for (int32_t i = 0; i < XS_NET_COUNTERS; i++)
        out[i] = atomic_load_explicit(&((xs_intake *)intake)->counter[i], memory_order_relaxed);
}

void intake_lose(xs_intake *intake, xs_link link, int32_t error)
{
    intake->error = error;
    intake->fd = -1;
    set_link(intake, link);
}

int32_t intake_fail(xs_intake *intake, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!intake->message[0]) vsnprintf(intake->message, sizeof intake->message, format, arguments);
    va_end(arguments);
    intake_lose(intake, XS_LINK_FAILED, 0);
    return XS_FAILED;
}

int32_t intake_await(xs_intake *intake, int64_t patience_ns)
{
    switch (link_of(intake)) {
    case XS_LINK_UP: {
        if (!patience_ns) return XS_WAIT;
        struct pollfd waiting = {.fd = intake->fd, .events = POLLIN};
        struct timespec patience = {.tv_nsec = patience_ns};
        return ppoll(&waiting, 1, &patience, NULL) ? XS_OK : XS_WAIT;
    }
    case XS_LINK_ENDED: return XS_END;
    case XS_LINK_FAILED: return XS_FAILED;
    default: break;
    }
    if (!patience_ns) return XS_WAIT;
    monitor_lock(&intake->monitor);
    if (link_of(intake) < XS_LINK_UP || link_of(intake) == XS_LINK_CLOSED)
        monitor_wait(&intake->monitor, patience_ns);
    monitor_unlock(&intake->monitor);
    return link_of(intake) == XS_LINK_UP ? XS_OK : XS_WAIT;
}

/* -- blocks -------------------------------------------------------------------------------- */

bool intake_columns(xs_intake *intake, int64_t samples, xs_feed_block *block)
{
    for (int32_t i = 0; i < intake->record.fields; i++) {
        int64_t bytes = intake->field[i].kind == XS_PLAIN ? intake->field[i].bytes : 8;
        block->column[i] = xs_seg_new(intake->manager, intake->position, samples, bytes);
        if (block->column[i]) continue;
        while (i--) {
            xs_seg_drop(block->column[i]);
            block->column[i] = NULL;
        }
        return false;
    }
    return true;
}

bool intake_nulls(xs_intake *intake, int64_t samples, xs_feed_block *block)
{
    if (!intake_columns(intake, samples, block)) return false;
    for (int32_t i = 0; i < intake->record.fields; i++) {
        const xs_record_field *field = &intake->field[i];
        int64_t bytes = field->kind == XS_PLAIN ? field->bytes : 8;
        char *to = xs_seg_own_data(block->column[i]);
        for (int64_t j = 0; j < samples; j++) memcpy(to + j * bytes, field->null, (size_t)bytes);
    }
    return true;
}

uint64_t intake_number(const char *at, int32_t bytes, int32_t swap)
{
    uint64_t number = 0;
    for (int32_t i = 0; i < bytes; i++)
        number |= (uint64_t)(unsigned char)at[swap ? bytes - 1 - i : i] << 8 * i;
    return number;
}

bool intake_unpack(xs_intake *intake, const char *records, int64_t count, xs_feed_block *block)
{
    if (!intake_columns(intake, count * intake->record.samples, block)) return false;
    void *columns[MAX_FIELDS];
    for (int32_t i = 0; i < intake->record.fields; i++)
        columns[i] = xs_seg_own_data(block->column[i]);
    xs_unpack(&intake->record, records, count, columns);
    return true;
}

int64_t intake_arrival_ns(xs_intake *intake, struct msghdr *message)
{
    int64_t arrived_ns = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET) continue;
        if (part->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec at;
            memcpy(&at, CMSG_DATA(part), sizeof at);
            arrived_ns = (int64_t)at.tv_sec * 1000000000 + at.tv_nsec - intake->clock_ns;
        } else if (part->cmsg_type == SO_RXQ_OVFL) {
            uint32_t dropped;
            memcpy(&dropped, CMSG_DATA(part), sizeof dropped);
            int64_t known = intake->counter[XS_NET_DROPPED];
            intake_count(intake, XS_NET_DROPPED, (int64_t)(uint32_t)(dropped - (uint32_t)known));
        }
    }
    return arrived_ns ? arrived_ns : engine_now_ns();
}

int64_t xs_intake_take_all(xs_intake *intake, int64_t wanted)
{
    int64_t samples = 0;
    uint64_t sum = 0;
    for (;;) {
        xs_feed_block block = {0};
        int32_t status = intake_receive(intake, wanted, 0, &block);
        if (status) return status == XS_FAILED ? -1 : samples;
        samples += block.column[0]->width;
        for (int32_t i = 0; i < intake->record.fields; i++) {
            xs_block *hold = NULL;
            const unsigned char *data = xs_seg_hold(block.column[i], &hold);
            for (int64_t at = 0; data && at < seg_bytes(block.column[i]); at++) sum += data[at];
            if (data) xs_block_unhold(hold);
            xs_seg_drop(block.column[i]);
        }
        __asm__ volatile("" : : "r"(sum)); /* the bytes have to be read */
    }
}
