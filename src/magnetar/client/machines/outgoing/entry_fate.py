"""What becomes of the messages of one entry: where they are stored, or why they are not.

All messages of an entry share one fate, so a receipt of the broker costs the same for one message and for a thousand.
An id is made on demand. What is counted of entries is kept in plain numbers: latencies as tenths of a
millisecond, until they are asked for.
"""

from __future__ import annotations

from typing import Any, Final

from magnetar.client.machines.message_id import MessageId

_UNITS: Final = 10_000
"""Steps of a second in which latencies are counted."""
_DIFFERENT_MAX: Final = 4_096
"""Different latencies that are kept exactly; further ones count as the nearest power of two above."""


class EntryFate:
    """The fate of one entry; not known until its receipt or its failure."""

    __slots__ = (
        "_batch",
        "_chunks",
        "_entry",
        "_ledger",
        "_partition",
        "_topic",
        "error",
        "known",
        "messages",
        "tokens",
    )

    def __init__(self, *, batch: bool) -> None:
        self.messages = 0
        """How many messages the entry holds by now; the last one added has the index one below."""
        self.known = False
        self.error: Exception | None = None
        """Why the messages failed, once it is known that they did."""
        self.tokens: list[tuple[int, Any]] = []
        """Who wants to hear, each with the index of its message."""
        self._batch = batch
        self._topic = ""
        self._partition = self._ledger = self._entry = -1
        self._chunks: tuple[tuple[int, int], ...] = ()

    def stored(
        self, topic: str, partition: int, ledger: int, entry: int, chunks: tuple[tuple[int, int], ...] = ()
    ) -> None:
        """Note where the entry is."""
        self.known = True
        self._topic, self._partition, self._ledger, self._entry, self._chunks = topic, partition, ledger, entry, chunks

    def failed(self, error: Exception) -> None:
        """Note why the messages are not stored, or that it is not known."""
        self.known = True
        self.error = error

    def message_id(self, index: int) -> MessageId:
        """Return the id of one message of an entry that is stored."""
        if not self._batch:
            return MessageId(self._partition, self._ledger, self._entry, topic=self._topic, chunks=self._chunks)
        return MessageId(self._partition, self._ledger, self._entry, index, batch_size=self.messages, topic=self._topic)


class PublishCounters:
    """The counters of one partition's producer."""

    __slots__ = ("bytes_sent", "failed", "latencies", "messages_sent")

    def __init__(self) -> None:
        self.messages_sent = 0
        """Those with a receipt."""
        self.bytes_sent = 0
        """Of their entries as they were sent, without metadata in batches."""
        self.failed = 0
        self.latencies: dict[int, int] = {}
        """Tenths of a millisecond to numbers of messages."""

    def stored(self, messages: int, size: int, seconds: float) -> None:
        """Count an entry that has its receipt, so long after it was handed in."""
        self.messages_sent += messages
        self.bytes_sent += size
        step = int(seconds * _UNITS)
        latencies = self.latencies
        if step not in latencies and len(latencies) >= _DIFFERENT_MAX:
            step = 1 << step.bit_length()
        latencies[step] = latencies.get(step, 0) + messages
