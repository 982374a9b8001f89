"""Deduplication of one topic while it is on: what was sent twice is kept once (rules of 3.4).

Streaming queries may be down for days and rely on what is remembered of them (docs/spark.md): producers whose names
begin as theirs do are remembered for longer, and counted by themselves, so that others' names do not push them out.

Judged is the name of the PRODUCER command with the sequence id of the SEND, a batch by its first one. A batch of which
a part is on disk and a part is not is refused: the broker does not unpack batches, and dropping it would lose the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from magnetar.broker.topic.publish.producer import PendingEntry, Producer, Publish
from magnetar.broker.topic.publish.receipt_order import OrderedReceipts
from magnetar.broker.topic.publish.sequence_ids import SequenceIds, Verdict
from magnetar.model.errors import NotAllowedError, PersistenceError, ProtocolError
from magnetar.model.ids import signed
from magnetar.protocol.commands import CommandSend
from magnetar.protocol.entries import messages_in, metadata_of
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

DEDUPLICATION: Final = "dedup"
STREAM_PREFIX: Final = "spark."
"""How names of producers of streaming queries begin."""


class DeduplicationSettings(NamedTuple):
    """Settings brokerDeduplication…"""

    producers_max: int = 10_000
    """Names remembered; those of connected producers always are."""
    inactivity_ms: int = 360 * 60_000
    """A producer that was away for so long is forgotten."""
    stream_inactivity_ms: int = 14 * 24 * 60 * 60_000
    """Time after which a producer of a streaming query is forgotten; there may be ``producers_max`` of those too."""


class Deduplication:
    """Lives as long as the policy says so and the topic is loaded."""

    def __init__(
        self, log: ManagedLedger, settings: DeduplicationSettings, connected: Callable[[str], bool], now_ms: int
    ) -> None:
        self._log = log
        self._settings = settings
        self._connected = connected
        self._feature_state = log.feature_state(DEDUPLICATION)
        self._ids = self._feature_state.open(SequenceIds)
        self._away = dict.fromkeys(self._ids, now_ms)
        """Since when producers are not connected, as far as this life of the topic knows."""

    def last_sequence_id(self, name: str) -> int:
        """What PRODUCER_SUCCESS says (rule 3.1.5)."""
        return self._ids.last(name)

    def settled(self, name: str) -> bool:
        """Whether ``last_sequence_id`` is the last word: nothing of that producer is in flight."""
        return self._ids.settled(name)

    def way_in(self, producer: Producer) -> Publish:
        """What that producer is to publish with."""
        if not isinstance(producer.connection, OrderedReceipts):
            producer.connection = OrderedReceipts(producer.connection)
        return partial(self._publish, producer, producer.connection)

    def _publish(self, producer: Producer, connection: OrderedReceipts, message: CommandSend) -> None:
        """Append the message unless it is there. Raises PersistenceError, NotAllowedError, and what appending does."""
        given = message.highest_sequence_id or 0
        entry = PendingEntry(producer, message.sequence_id, given if given >= message.sequence_id else 0)
        if message.marker or (message.is_chunk and not _is_last_chunk(message.entry)):
            self._append(connection, entry, message)
            return
        ids, name = self._ids, producer.info.name
        sequence_id = signed(message.sequence_id)
        highest = max(signed(message.highest_sequence_id or 0), sequence_id)
        verdict = ids.judge(name, sequence_id, highest)
        if verdict is Verdict.NEW:
            self._append(connection, entry, message)
            ids.push(name, highest)
            self._feature_state.touch()
        elif verdict is Verdict.DUPLICATE:
            connection.duplicate(entry)
        elif verdict is Verdict.UNKNOWN:
            text = f"[{self._log.name}][{name}]Cannot determine whether the message is a duplicate at this time"
            raise PersistenceError(text)
        else:
            text = (
                f"the batch of sequence ids {sequence_id} to {highest} begins with messages that are stored up to "
                f"{ids.last(name)}; send the others in a batch of their own"
            )
            raise NotAllowedError(text)

    def _append(self, connection: OrderedReceipts, entry: PendingEntry, message: CommandSend) -> None:
        entry.producer.append(message.entry, messages_in(message.entry, message.num_messages), entry)
        connection.appended(entry)

    def tidy(self, now_ms: int) -> None:
        """Forget who was away for too long, and who is too many."""
        ids, away, settings = self._ids, self._away, self._settings
        count = {True: 0, False: 0}
        """Names counted by whether they are of streaming queries."""
        for name in ids:
            count[name.startswith(STREAM_PREFIX)] += 1
            if self._connected(name):
                away.pop(name, None)
            else:
                away.setdefault(name, now_ms)
        gone: list[str] = []
        for streams, patience in ((False, settings.inactivity_ms), (True, settings.stream_inactivity_ms)):
            late = [
                name
                for name, since in away.items()
                if now_ms - since >= patience and name.startswith(STREAM_PREFIX) == streams
            ]
            gone += late
            surplus = count[streams] - len(late) - settings.producers_max
            if surplus > 0:
                gone += self._oldest(surplus, streams, frozenset(late))
        if gone:
            ids.forget(gone)
            for name in gone:
                away.pop(name, None)
            self._feature_state.touch()

    def _oldest(self, count: int, streams: bool, leaving: frozenset[str]) -> list[str]:
        """Who of streaming queries, or of the others, published longest ago and may be forgotten."""

        def keep(name: str) -> bool:
            other = name.startswith(STREAM_PREFIX) != streams
            return other or name in leaving or self._connected(name) or not self._ids.settled(name)

        return self._ids.oldest(count, keep)

    def remove(self) -> None:
        """The policy switched deduplication off: forget everything, because nothing is noted from now on."""
        self._feature_state.remove()


def _is_last_chunk(entry: bytes) -> bool:
    """All chunks of a message have its sequence id; only the last one says that it is there (rule 3.4.7)."""
    try:
        metadata = metadata_of(entry)
    except ProtocolError:
        return True
    chunk, chunks = metadata.chunk_id, metadata.num_chunks_from_msg
    return chunk is None or chunk < 0 or chunk == (chunks or 0) - 1
