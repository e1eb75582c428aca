"""`xs.io.kafka`: messages of records in a Kafka topic (the extra `kafka`)."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from xstream.console import require_package
from xstream.engine.attachment import Position
from xstream.engine.native import NativePlan
from xstream.engine.operator import whole_number
from xstream.engine.schema import Schema
from xstream.errors import GraphError, InputError
from xstream.io.feed import READ_AHEAD_BLOCKS, Block
from xstream.io.live import LiveChannel, LiveFeed
from xstream.io.output import Columns, Signals

__all__ = ["KafkaTopic", "kafka"]

_LOOK_S = 0.05
#: How long a client waits for a broker at the beginning. Later it waits as long as it takes.
_REACH_S = 10.0
_BATCH = 500


@dataclass(frozen=True, eq=False)
class KafkaTopic(LiveChannel):
    """A topic of a Kafka cluster: the value of a message has records; an empty one ends it."""

    kind = "kafka"
    topic: str = ""
    #: The messages of one partition are in order, so a stream uses one.
    partition: int = 0
    #: Further settings of librdkafka.
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_package("confluent_kafka")
        if not isinstance(self.topic, str) or not self.topic:
            raise GraphError(f"kafka: topic is the name of a topic, not {self.topic!r}")
        whole_number(self, "partition", 0, 2**31 - 1)

    def _settings(self, **own: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self.address, **own, **self.settings}

    def create(
        self, plan: NativePlan, inputs: tuple[Schema, ...], outputs: tuple[Schema, ...]
    ) -> Any:
        return _TopicFeed(plan, self).native_source(plan)

    def messages(self, over: threading.Event, first: int | None) -> Iterator[tuple[int, Block]]:
        """The offsets of messages and their columns, from an offset or from the oldest on."""
        import confluent_kafka as library

        settings = self._settings(
            **{"group.id": "xstream", "enable.auto.commit": False, "log_level": 0,
                "auto.offset.reset": "error", "fetch.message.max.bytes": self.max_message_bytes}
        )  # fmt: skip
        try:
            consumer = library.Consumer(settings)
        except library.KafkaException as error:
            raise InputError(f"{self.label}: {error.args[0].str()}") from error
        begin = library.OFFSET_BEGINNING if first is None else first
        try:
            self.reach(consumer, over)
            consumer.assign([library.TopicPartition(self.topic, self.partition, begin)])
            while not over.is_set():
                for message in consumer.consume(_BATCH, _LOOK_S):
                    if message.error() is not None:
                        self._check(message.error(), library)
                    elif not message.value():
                        return
                    else:
                        yield message.offset(), self.columns_of(message.value())
        finally:
            consumer.close()

    def reach(self, client: Any, over: threading.Event) -> None:
        """Wait for an answer of a broker; raise an InputError if there is none for long."""
        import confluent_kafka as library

        until = time.monotonic() + _REACH_S
        while not over.is_set():
            try:
                client.list_topics(self.topic, timeout=4 * _LOOK_S)
                return
            except library.KafkaException as error:
                if time.monotonic() > until:
                    raise InputError(
                        f"{self.label} cannot be reached: {error.args[0].str()}"
                    ) from error

    def _check(self, error: Any, library: Any) -> None:
        """Raise an InputError for errors that do not pass by themselves."""
        passing = (library.KafkaError._PARTITION_EOF, library.KafkaError._TRANSPORT)
        waiting = error.code() == library.KafkaError.UNKNOWN_TOPIC_OR_PART  # may be created yet
        if error.fatal() or not (error.retriable() or waiting or error.code() in passing):
            raise InputError(f"{self.label}: {error.str()}")

    def writer(self, signals: Signals, over: threading.Event) -> KafkaWriter:
        return KafkaWriter(self, signals, over)


#: A message: the index of its first sample, its samples, its offset.
_Mark = tuple[int, int, int]
#: More messages than are read ahead of the engine, so that those in use are among the last ones.
_AHEAD = READ_AHEAD_BLOCKS + 4


class _TopicFeed(LiveFeed):
    """Reads messages, and keeps the offsets of those that the query has not used up."""

    channel: KafkaTopic

    def __init__(self, plan: NativePlan, channel: KafkaTopic) -> None:
        super().__init__(plan, channel)
        self.identity = {"topic": channel.topic, "partition": channel.partition}
        self._marks: deque[_Mark] = deque()
        self._lock = threading.Lock()
        #: Where it begins: an offset, and the samples of that message that have been used.
        self._offset: int | None = None
        self._used = 0

    def blocks(self, row: int) -> Iterator[Block]:
        index, used = row * self.row_samples, self._used
        for offset, block in self.channel.messages(self.over, self._offset):
            if offset != self._offset or used >= len(block[0]):  # another message: whole
                used = 0
            with self._lock:
                self._marks.append((index - used, len(block[0]), offset))
                self._forget()
            left, used = [column[used:] for column in block], 0
            index += len(left[0])
            yield left

    def _forget(self) -> None:
        """Drop what was used up long ago: a position is at most some windows behind."""
        behind = 4 * self.channel.window
        while len(self._marks) > _AHEAD:
            first, samples, _ = self._marks[0]
            if self._marks[-_AHEAD][0] - first - samples < behind:
                return
            self._marks.popleft()

    def position_of(self, sample: int) -> Position:
        """The sample, the offset of its message, and the samples before it in that message."""
        offset, used = self._offset, self._used
        with self._lock:
            for first, samples, at in reversed(self._marks):
                if first <= sample:
                    offset, used = at, sample - first
                    if used >= samples:
                        offset, used = at + 1, 0
                    break
        used -= used % self.row_samples
        return {"sample": sample, "offset": offset, "used": used, **self.identity}

    def restore(self, position: Position) -> None:
        """Begin at the offset of a position in the same topic."""
        if any(position.get(name) != value for name, value in self.identity.items()):
            raise InputError(
                f"{self.channel.label}: the position {dict(position)} is of another topic"
            )
        self.first = int(position["sample"])
        self._offset, self._used = position["offset"], int(position["used"])


class KafkaWriter:
    """Produces messages; waits while the queue of the library is full."""

    def __init__(self, channel: KafkaTopic, signals: Signals, over: threading.Event) -> None:
        import confluent_kafka as library

        self.channel, self.signals, self.over = channel, signals, over
        self._failed: str = ""
        self._reached = False
        try:
            self._producer = library.Producer(channel._settings(log_level=0))
        except library.KafkaException as error:
            raise InputError(f"{channel.label}: {error.args[0].str()}") from error

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None and not self._failed:
            self._failed = error.str()

    def _send(self, data: bytes) -> None:
        if not self._reached:
            self.channel.reach(self._producer, self.over)
            self._reached = True
        while not self.over.is_set():
            try:
                self._producer.produce(
                    self.channel.topic, data, partition=self.channel.partition,
                    on_delivery=self._delivered,
                )  # fmt: skip
                break
            except BufferError:
                self._producer.poll(_LOOK_S)
        self._producer.poll(0)
        if self._failed:
            raise InputError(f"{self.channel.label}: {self._failed}")

    def write(self, columns: Columns) -> None:
        """Send records as messages of at most a megabyte, which brokers accept."""
        records = self.channel.records_of(columns, self.signals)
        step = max((1 << 19) // records.dtype.itemsize, 1)
        for at in range(0, len(records), step):
            self._send(records[at : at + step].tobytes())

    def commit(self) -> int | None:
        """What was sent cannot be taken back."""
        return None

    def finish(self) -> None:
        """Send the empty message that ends the stream, and wait until all are delivered."""
        self._send(b"")
        while self._producer.flush(_LOOK_S) and not self.over.is_set():
            pass
        if self._failed:
            raise InputError(f"{self.channel.label}: {self._failed}")

    def abort(self) -> None:
        """Discard what was not sent."""
        self._producer.purge()


def kafka(
    servers: str,
    topic: str,
    dtype: npt.DTypeLike | None = None,
    rate_hz: float | None = None,
    window: int = 4096,
    *,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> KafkaTopic:
    """Records in the messages of a Kafka topic, as a source and as a sink; needs `xstream[kafka]`.

    `servers` is "host:port,..."; `settings` are further ones of librdkafka. A stream is one
    partition of the topic (`partition=0`), because messages of several have no order among them. A
    source begins with the oldest message, and an empty message ends the stream.

    >>> import xstream as xs
    >>> source = xs.io.kafka("127.0.0.1:9092", "samples", dtype="float32", rate_hz=8000.0)
    """
    return KafkaTopic(
        servers, dtype, rate_hz, window, topic=topic, settings=dict(settings or {}), **options
    )
