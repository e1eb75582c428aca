"""Bare C programs on sockets, to compare sources on the network with, and to send to both."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xstream.errors import InputError

__all__ = ["FRAME_BYTES", "PAYLOAD_BYTES", "BareSockets"]

#: The payload of a TCP frame, and of a datagram.
FRAME_BYTES = 64 << 10
PAYLOAD_BYTES = 1424

_PROGRAM = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FRAME = 64 << 10, PAYLOAD = 1424, HEADER = 16, BATCH = 64 };
static char buffer[BATCH][FRAME + 4];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct sockaddr_in at(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void tcp_receive(int port)
{
    struct sockaddr_in address = at(port);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1)) exit(1);
    int peer = accept(listener, NULL, NULL);
    int64_t bytes = 0;
    for (ssize_t got; (got = recv(peer, buffer[0], FRAME, 0)) > 0;) bytes += got;
    printf("%lld\n", (long long)bytes);
}

/* Frames of 64 KiB with their lengths, then the end; the time until the peer has closed. */
static void tcp_send(int port, int64_t frames)
{
    struct sockaddr_in address = at(port);
    int out = -1, on = 1;
    for (int i = 0; i < 2000; i++) {
        out = socket(AF_INET, SOCK_STREAM, 0);
        if (!connect(out, (void *)&address, sizeof address)) break;
        close(out);
        usleep(5000);
    }
    setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* BBR paces a sender by the rates that it has measured, and stays slow for whole runs. */
    setsockopt(out, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    int32_t length = FRAME;
    memcpy(buffer[0], &length, 4);
    int64_t begun = now_ns();
    for (int64_t i = 0; i < frames; i++)
        for (ssize_t at = 0, put; at < FRAME + 4; at += put)
            if ((put = send(out, buffer[0] + at, FRAME + 4 - at, 0)) <= 0) exit(1);
    length = 0;
    send(out, &length, 4, 0);
    shutdown(out, SHUT_WR);
    while (recv(out, buffer[1], FRAME, 0) > 0) {}
    printf("%lld\n", (long long)(now_ns() - begun));
}

static void udp_receive(int port)
{
    struct sockaddr_in address = at(port);
    int in = socket(AF_INET, SOCK_DGRAM, 0), size = 8 << 20;
    if (setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        setsockopt(in, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (bind(in, (void *)&address, sizeof address)) exit(1);
    static struct mmsghdr message[BATCH];
    static struct iovec part[BATCH];
    for (int i = 0; i < BATCH; i++) {
        part[i] = (struct iovec){buffer[i], HEADER + PAYLOAD};
        message[i].msg_hdr = (struct msghdr){.msg_iov = &part[i], .msg_iovlen = 1};
    }
    int64_t datagrams = 0;
    for (int end = 0; !end;) {
        int got = recvmmsg(in, message, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < got && !end; i++)
            if (message[i].msg_len == HEADER) end = 1;
            else datagrams++;
    }
    printf("%lld\n", (long long)datagrams);
}

/* Numbered datagrams, at so many per second if that is not 0; the time until the last. */
static void udp_send(int port, int64_t datagrams, double per_second)
{
    struct sockaddr_in address = at(port);
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    if (connect(out, (void *)&address, sizeof address)) exit(1);
    static struct mmsghdr message[BATCH];
    static struct iovec part[BATCH];
    for (int i = 0; i < BATCH; i++) {
        part[i] = (struct iovec){buffer[i], HEADER + PAYLOAD};
        message[i].msg_hdr = (struct msghdr){.msg_iov = &part[i], .msg_iovlen = 1};
    }
    int batch = per_second ? 16 : BATCH;
    usleep(500000); /* the receiver begins meanwhile */
    int64_t begun = now_ns();
    for (uint64_t sent = 0; sent < (uint64_t)datagrams; sent += batch) {
        for (uint64_t i = 0; i < (uint64_t)batch; i++) {
            uint64_t header[2] = {sent + i, (sent + i) * (PAYLOAD / 4)};
            memcpy(buffer[i], header, sizeof header);
        }
        if (per_second)
            while (now_ns() - begun < (int64_t)((double)sent / per_second * 1e9)) {}
        for (int done = 0; done < batch;) {
            int more = sendmmsg(out, message + done, batch - done, 0);
            if (more > 0) done += more;
        }
    }
    int64_t took = now_ns() - begun;
    uint64_t header[2] = {datagrams, datagrams * (PAYLOAD / 4)};
    for (int i = 0; i < 40; i++) {
        if (send(out, header, sizeof header, 0) < 0) break; /* the receiver has ended */
        usleep(5000);
    }
    printf("%lld\n", (long long)took);
}

int main(int count, char **given)
{
    int port = atoi(given[2]);
    if (!strcmp(given[1], "tcp-receive")) tcp_receive(port);
    if (!strcmp(given[1], "tcp-send")) tcp_send(port, atoll(given[3]));
    if (!strcmp(given[1], "udp-receive")) udp_receive(port);
    if (!strcmp(given[1], "udp-send")) udp_send(port, atoll(given[3]), atof(given[4]));
    return 0;
}
"""


@contextmanager
def on_processor(process: int, part: str) -> Iterator[None]:
    """Give senders and receivers a processor each: where they share one by chance, rates halve."""
    allowed = os.sched_getaffinity(process)
    if len(allowed) > 1:
        os.sched_setaffinity(process, {sorted(allowed)[part == "receive"]})
    try:
        yield
    finally:
        if process == 0:
            os.sched_setaffinity(process, allowed)


class BareSockets:
    """The compiled program, which sends or receives in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = shlex.split(os.environ.get("CC", "cc"))
        if shutil.which(command[0]) is None:
            raise InputError(f"the C compiler {command[0]!r}, for the bare loops, was not found")
        source, self.program = folder / "bare.c", folder / "bare"
        source.write_text(_PROGRAM)
        subprocess.run([*command, "-O2", "-o", str(self.program), str(source)], check=True)

    @contextmanager
    def running(self, *given: object) -> Iterator[subprocess.Popen[str]]:
        """A process of the program; its answer is one number."""
        command = [str(self.program), *map(str, given)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        part = str(given[0]).partition("-")[2]
        try:
            with on_processor(process.pid, part):
                yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    @staticmethod
    def answer(process: subprocess.Popen[str]) -> int:
        """What the process has measured or counted."""
        text, _ = process.communicate(timeout=120)
        if process.returncode or not text.strip():
            raise InputError("a bare program on sockets has failed")
        return int(text)
