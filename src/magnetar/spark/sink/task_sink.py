"""What a Spark task does to write: rows to entries, entries to the broker, done when all are stored.

With a `Numbering` the task writes effectively once: under a name of its own that every attempt of the task has, with
sequence ids that every attempt gives to the same rows, and after what the broker has already (`sequence_ids`). That
needs deduplication at the broker. No client can ask for that over the broker's port; but a producer whose name the
broker remembers after its first entry proves it, and so a name that the broker does not know is checked once it has
sent one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from magnetar.client.errors import RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.columnar.offset_width import with_32_bit_offsets
from magnetar.columnar.row_router import Router, Rows
from magnetar.model.errors import InvalidValueError, NotAllowedError, ServerError
from magnetar.model.names import TopicName
from magnetar.protocol.batches import Batch
from magnetar.runtime.clock import SystemClock, steady_seconds
from magnetar.spark.interpreter import settle
from magnetar.spark.options.encryption_keys import sealing
from magnetar.spark.options.sink_options import SinkOptions
from magnetar.spark.sink.sequence_ids import FINE_ROWS, StoredRows, check_rows, digest_bits, first_number, numbers
from magnetar.spark.sink.value_writer import ValueWriter, value_writer

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TRUSTED: Final = 60.0
"""How long a topic that was seen to have deduplication on is believed to have it still, seconds."""

_seen: dict[tuple[str, str], float] = {}
"""When that was seen, by service URL and topic, in this process, which Spark uses for many tasks."""


class Numbering(NamedTuple):
    name: str
    """The name of all producers of the task."""
    batch: int


class Published(NamedTuple):
    messages: int
    skipped: int
    """The broker had them from an earlier attempt."""


class _Target:
    """One topic or partition that the task writes to."""

    def __init__(
        self, lookup: Lookup, options: SinkOptions, topic: str, numbering: Numbering | None, values: ValueWriter | None
    ) -> None:
        # Its kernels take a quarter of a second to load, and the driver imports this module too.
        from magnetar.columnar.entries.packer import Packer

        self._numbering = numbering
        name = None if numbering is None else numbering.name
        seal = sealing(options.encryption)
        try:
            self.producer = Producer(
                lookup,
                topic,
                name,
                send_timeout=options.send_timeout,
                schema=None if values is None else values.command(),
                encrypted=seal is not None,
            )
        except RefusedError as error:
            if values is not None and error.code is ServerError.IncompatibleSchema:
                raise values.explained(error, topic) from None
            if name is None or error.code is not ServerError.ProducerBusy:
                raise
            text = (
                f"it is taken after {options.operation_timeout:g} s still, so another attempt of this task still "
                "writes: spark.speculation must be false; or another query has the same checkpoint, or txnAppId"
            )
            raise RefusedError(f"open producer {name} on {topic}", error.code, text) from error
        self.packer = Packer(
            self.producer.name,
            compression=options.compression,
            max_messages=options.batch_messages,
            max_bytes=options.batch_bytes,
            schema_version=self.producer.schema_version,
            seal=seal,
        )
        self.key = options.service_url, topic
        self.unproven = numbering is not None and self.producer.last_sequence_id < 0
        if not self.unproven:
            _seen[self.key] = steady_seconds()
        elif steady_seconds() - _seen.get(self.key, -_TRUSTED) < _TRUSTED:
            self.unproven = False

    def prove(self) -> None:
        """Check, once the first entry is sent, that the broker remembers it."""
        self.producer.flush()
        if self.producer.ask_last_sequence_id() < 0:
            raise NotAllowedError(deduplication_is_off(self.producer.topic))
        self.unproven = False
        _seen[self.key] = steady_seconds()


def deduplication_is_off(topic: str) -> str:
    """Return the text that says how to turn deduplication on."""
    namespace = TopicName.parse(topic).namespace.text
    return (
        f"{topic}: the broker does not remember what this query has sent, because deduplication is off there. Turn it "
        f"on for the namespace (pulsar-admin namespaces set-deduplication --enable {namespace}), for all (setting "
        "brokerDeduplicationEnabled=true), or write with the option delivery=at-least-once. The first entry of the "
        "task was stored to find this out"
    )


class TaskSink:
    """The producers of one task, one for each topic or partition it meets."""

    def __init__(self, options: SinkOptions, numbering: Numbering | None) -> None:
        self._options = options
        self._numbering = numbering
        self._first = 0 if numbering is None else first_number(numbering.batch)
        self._lookup = options.login.lookup(options.service_url, options.operation_timeout)
        self._values = value_writer(options, self._lookup)
        self._counts: dict[str, int] = {}
        self._open: dict[tuple[str, int], tuple[_Target, StoredRows | None]] = {}
        self._clock = SystemClock()

    def run(self, batches: Iterator[Any]) -> Published:
        """Send everything, wait for every receipt, close."""
        options = self._options
        router = Router(options.topic, self._partition_count, murmur=options.murmur, run=options.batch_messages)
        skipped = 0
        with self._lookup, ExitStack() as stack:
            for given in map(with_32_bit_offsets, batches):
                batch = given
                if self._values is not None:
                    batch = self._values.encoded(given)
                    router.base64_keys = self._values.separated
                if self._numbering is not None:
                    check_rows(router.ordinal + batch.num_rows)
                for rows in router.split(batch):
                    skipped += self._send(rows, stack)
            for target, known in self._open.values():
                target.producer.flush()
                if known is not None:
                    known.finish()
            settle("sink")
            return Published(sum(target.producer.messages_confirmed for target, _ in self._open.values()), skipped)

    def known(self, last_sequence_id: int, batch: int, where: str) -> StoredRows:
        """Return what an attempt of this task has to go on from."""
        return StoredRows(last_sequence_id, batch, where)

    def _opened(self, rows: Rows, stack: ExitStack) -> tuple[_Target, StoredRows | None]:
        found = self._open.get(rows[:2])
        if found is None:
            target = _Target(self._lookup, self._options, rows.target, self._numbering, self._values)
            producer = target.producer
            stack.callback(producer.close)
            known = None
            if self._numbering is not None:
                where = f"{rows.target}, producer {producer.name}"
                known = self.known(producer.last_sequence_id, self._numbering.batch, where)
            found = self._open[rows[:2]] = target, known
        return found

    def _send(self, rows: Rows, stack: ExitStack) -> int:
        """Send rows and return how many of them the broker had already."""
        target, known = self._opened(rows, stack)
        if known is None:
            self._send_numbered(target, rows, rows.picked, rows.ordinals)
            return 0
        # Ids of early rows are made in another way than those of late ones.
        border = int(np.searchsorted(rows.ordinals, FINE_ROWS))
        return sum(
            self._resume(target, known, rows, part)
            for part in (slice(0, border), slice(border, len(rows.ordinals)))
            if part.start < part.stop
        )

    def _resume(self, target: _Target, known: StoredRows, rows: Rows, part: slice) -> int:
        """Skip what the broker has, send the rest, and return how many rows were skipped."""
        picked, ids = rows.picked[part], numbers(self._first, rows.ordinals[part])
        target.packer.digest_bits = digest_bits(int(rows.ordinals[part.start]))
        skip = 0
        if known.pending:
            skip = known.stored_of(ids.tolist())
            for _ in target.packer.pack(self._clock.now_ms(), rows.messages, picked[:skip], ids[:skip]):
                pass  # for the digest
            if skip:
                known.compare(int(ids[skip - 1]), target.packer.digest)
        self._send_numbered(target, rows, picked[skip:], ids[skip:])
        return skip

    def _send_numbered(self, target: _Target, rows: Rows, picked: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        limit = target.producer.max_message_size
        for batch in target.packer.pack(self._clock.now_ms(), rows.messages, picked, ids):
            if len(batch.entry) <= limit:
                target.producer.send(*batch)
            else:
                self._send_large(target, batch, limit)
            if target.unproven:
                target.prove()

    def _send_large(self, target: _Target, batch: Batch, limit: int) -> None:
        """Send in chunks, if it is one message and the options allow it. Raises InvalidValueError."""
        what, smaller = "a message", "compress (pulsar.producer.compressionType)"
        if batch.messages > 1:
            what, smaller = f"a batch of {batch.messages} messages", "lower pulsar.producer.batchingMaxBytes"
        elif self._options.chunking:
            if chunks := target.packer.chunks(limit):
                target.producer.send_chunks(chunks, batch.sequence_id)
                return
            smaller = "its key and properties alone do not fit, so make these smaller"
        else:
            smaller += ", send it in chunks (pulsar.producer.chunkingEnabled=true)"
        raise InvalidValueError(
            f"{target.producer.topic}: {what} has {len(batch.entry)} bytes, more than the {limit} that the "
            f"broker takes; {smaller}, or raise the broker's maxMessageSize"
        )

    def _partition_count(self, topic: str) -> int:
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = self._lookup.partition_count(topic)
        return count
