"""The queue of one producer on one topic or partition (rules of 3.3 to 3.6).

    add -> open batch -> pending, in the order of sequence ids -> written -> receipt, in the same order

What has no receipt when the connection is lost is written again on the next one, in the same order and with the same
sequence ids, so that a broker with deduplication stores it once; without, an entry whose receipt was lost is stored
twice. What is in a transaction fails instead, and the transaction with it. An entry that timed out keeps its place
without its bytes until its receipt has come or the connection is lost: receipts are matched by their order alone.

Each entry has one `EntryFate`, handed back when it is known. Tokens are the caller's: who wants to hear of a message.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from magnetar.client.errors import ConnectionLostError, MessageTooLargeError
from magnetar.client.machines.outgoing.batch_wait import NEVER, BatchWait
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.open_batches import FullBatch, OpenBatches
from magnetar.client.machines.outgoing.outgoing_message import PLAIN_NUMBERS, EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.client.machines.outgoing.unconfirmed_entry import UnconfirmedEntry
from magnetar.columnar.single_entries.chunk_splitter import split_into_chunks
from magnetar.protocol import commands as c
from magnetar.protocol.codec import frame_head
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.entries import SingleMessageMetadata, join_batch
from magnetar.protocol.handmade_frames.sends import send_head

_METADATA_BYTES: Final = 1024
"""What the metadata of a batch may take beside what its messages say."""


class Publication:
    """One producer's queue; the caller owns time, bytes on the wire and tokens."""

    def __init__(
        self,
        topic: str,
        maker: EntryMaker,
        limits: PublicationLimits,
        max_message_size: int,
        *,
        overhead: int = 0,
        memory: PendingBytes | None = None,
    ) -> None:
        """``overhead``: bytes that encryption adds to an entry at most; ``memory``: that of all queues of a client."""
        self._memory = PendingBytes() if memory is None else memory
        self.topic = topic
        self.maker = maker
        self.max_message_size = max_message_size
        self.last_sequence_id = -1
        """The highest one with a receipt."""
        self.messages = 0
        """Messages without a receipt, those in open batches among them."""
        self._limits = limits
        self._overhead = overhead
        self._open = OpenBatches(limits.batch_messages, self._batch_room(), by_key=limits.batch_by_key)
        self._wait = BatchWait(limits.batch_delay)
        self._pending: deque[UnconfirmedEntry] = deque()
        self._written = 0
        """How many of the pending ones were written on the present connection, from the oldest on."""
        self._next_sequence_id = 0
        self._producer_id: int | None = None

    def _batch_room(self) -> int:
        room = max(self.max_message_size - len(self.maker.producer_name) - _METADATA_BYTES - self._overhead, 1)
        return min(self._limits.batch_bytes, room) if self._limits.batch_bytes > 0 else room

    def limit_to(self, max_message_size: int, now: float, now_ms: int) -> list[tuple[UnconfirmedEntry, int]]:
        """Go by what the broker of the next connection takes.

        Returns entries that are too large for it, and the other chunks of such, with the bytes of their messages: a
        broker ends the connection over them.
        """
        smaller = max_message_size < self.max_message_size
        if smaller:
            self.close_batches(now, now_ms)
        self.max_message_size = max_message_size
        self._open.bytes_max = self._batch_room()
        if not smaller:
            return []
        cut = {id(one.places) for one in self._pending if len(one.entry or b"") > max_message_size and one.is_chunk}
        found = self._take_out(lambda one: len(one.entry or b"") > max_message_size or id(one.places) in cut)
        sizes: Counter[int] = Counter()
        for one in found:
            sizes[id(one.places if one.is_chunk else one)] += one.size
        return [(one, sizes[id(one.places if one.is_chunk else one)]) for one in found]

    def begin_at(self, sequence_id: int) -> None:
        """Number the next message with ``sequence_id`` at least."""
        self._next_sequence_id = max(self._next_sequence_id, sequence_id)

    @property
    def batch_bytes(self) -> int:
        """Bytes that the messages of a batch may have."""
        return self._open.bytes_max

    @property
    def full(self) -> bool:
        """Whether no further message may be added."""
        return 0 < self._limits.pending_messages <= self.messages

    @property
    def idle(self) -> bool:
        """Whether every message has met its fate."""
        return not self.messages

    @property
    def batch_due(self) -> float:
        """When open batches must be sent; `NEVER` if there are none."""
        return self._wait.until

    @property
    def next_deadline(self) -> float:
        """Return when the oldest entry times out."""
        for one in self._pending:
            if one.entry is not None:
                return one.deadline
        return self._deadline(self._wait.since)

    @property
    def unwritten(self) -> bool:
        """Whether there is something to write on the present connection."""
        return self._producer_id is not None and self._written < len(self._pending)

    def add(self, message: OutgoingMessage, token: Any, now: float, now_ms: int) -> EntryFate:
        """Add a message, which is the last one of the fate that is returned; ``token`` hears of it unless it is None.

        Raises MessageTooLargeError, and then nothing has changed.
        """
        if not self._limits.batching or message.alone or message.weight > self._open.bytes_max:
            return self._add_alone(message, token, now, now_ms)
        if not self._open.has_room(message):
            self.close_batches(now, now_ms)
        sequence_id = self._number(message)
        if not self._open.messages:
            self._wait.begin(now)
        self.messages += 1
        self._memory.free -= message.weight
        fate, full = self._open.add(message, sequence_id, token)
        if full:
            self.close_batches(now, now_ms)
        return fate

    def hurry(self, *, any_delay: bool) -> None:
        """Have what is open sent as soon as nothing else is on its way: a caller waits for it (`BatchWait.hurry`)."""
        if self._open.messages:
            self._wait.hurry(any_delay=any_delay, idle=not self._pending)

    def join(self, content: bytes) -> EntryFate | None:
        """Add bytes without a key to an open batch, as `add`; None where there is none that only grows with them, and
        then nothing has changed. It is what most messages take where there are many."""
        sequence_id = self._next_sequence_id
        fate = self._open.join(content, sequence_id)
        if fate is not None:
            self._next_sequence_id = sequence_id + 1
            self.messages += 1
            self._memory.free -= len(content) + PLAIN_NUMBERS
        return fate

    def join_many(self, contents: Sequence[bytes], at: int, stop: int) -> tuple[EntryFate | None, int]:
        """Add those from ``at`` until ``stop`` as long as `join` would; returns how many that is, and their fate."""
        before = self._open.size
        fate, count = self._open.join_many(contents, at, stop, self._next_sequence_id, self._memory.free)
        self._memory.free -= self._open.size - before
        self._next_sequence_id += count
        self.messages += count
        return fate, count

    def close_batches(self, now: float, now_ms: int) -> None:
        """Make entries of what is open."""
        since = self._wait.end(self._open.messages)
        self._memory.free += self._open.size  # weighed at most; what is made of it is known exactly
        for batch in self._open.take():
            self._append_batch(batch, since, now_ms)

    def _append_batch(self, batch: FullBatch, since: float, now_ms: int) -> None:
        ids = batch.sequence_id, batch.highest_sequence_id if batch.messages > 1 else None
        entry = self.maker.batch(batch.first, ids, batch.messages, batch.payload, now_ms)
        if len(entry) > self.max_message_size:  # compression makes what cannot be compressed larger
            plain = replace(self.maker, compression=CompressionType.NONE)
            entry = plain.batch(batch.first, ids, batch.messages, batch.payload, now_ms)
        pending = UnconfirmedEntry(ids[0], ids[1], entry, batch.fate, self._deadline(since), size=len(batch.payload))
        pending.since = since
        pending.txn = batch.first.txn
        self._memory.free -= pending.size
        self._pending.append(pending)

    def _add_alone(self, message: OutgoingMessage, token: Any, now: float, now_ms: int) -> EntryFate:
        self.close_batches(now, now_ms)
        sequence_id = self._peek(message)
        entry = self.maker.single(message, sequence_id, now_ms)
        entries = [entry]
        if len(entry) > self.max_message_size:
            entries = self._chunks(message, sequence_id, now_ms) if self._limits.chunking else []
            if not entries:
                chunkable = not self._limits.chunking and _uncut(message) < self.max_message_size
                raise MessageTooLargeError(self.topic, len(entry), self.max_message_size, chunkable=chunkable)
        self._number(message)
        self.messages += 1
        fate = EntryFate(batch=False)
        fate.messages = 1
        if token is not None:
            fate.tokens.append((0, token))
        self._append(entries, (sequence_id, None), fate, now, message.txn)
        return fate

    def _append(
        self, entries: Sequence[bytes], ids: tuple[int, int | None], fate: EntryFate, now: float, txn: c.TxnId | None
    ) -> None:
        """Add an entry, or the chunks of one message."""
        places: list[tuple[int, int]] | None = [] if len(entries) > 1 else None
        for number, one in enumerate(entries):
            of_it = fate if number == len(entries) - 1 else EntryFate(batch=False)
            pending = UnconfirmedEntry(*ids, one, of_it, self._deadline(now), size=len(one))
            pending.since = now
            pending.is_chunk = len(entries) > 1
            pending.places = places
            pending.txn = txn
            self._memory.free -= pending.size
            self._pending.append(pending)

    @property
    def next_sequence_id(self) -> int:
        """The number that the next message gets, if it brings none."""
        return self._next_sequence_id

    def add_made(
        self, entries: Sequence[bytes], ids: tuple[int, int], messages: int, now: float, now_ms: int
    ) -> EntryFate:
        """Add a batch that was made elsewhere with `next_sequence_id` and those after it, or the chunks of one message.

        ``ids`` are the first and the highest.
        """
        self.close_batches(now, now_ms)
        assert ids[0] == self._next_sequence_id, "nothing was added since it was made"
        chunks = len(entries) > 1
        fate = EntryFate(batch=not chunks)
        fate.messages = messages
        self._append(entries, (ids[0], ids[1] if messages > 1 else None), fate, now, None)
        self._next_sequence_id = ids[1] + 1
        self.messages += messages
        return fate

    def _chunks(self, message: OutgoingMessage, sequence_id: int, now_ms: int) -> list[bytes]:
        metadata = self.maker.metadata(message, sequence_id, now_ms)
        single = SingleMessageMetadata(
            properties=message.properties, event_time=message.event_time, null_value=message.null_value
        )
        payload = join_batch([(single, message.payload)])
        return split_into_chunks(metadata, payload, self.max_message_size, self.maker.seal)

    def _peek(self, message: OutgoingMessage) -> int:
        return self._next_sequence_id if message.sequence_id is None else message.sequence_id

    def _number(self, message: OutgoingMessage) -> int:
        number = self._peek(message)
        self._next_sequence_id = max(self._next_sequence_id, number + 1)
        return number

    def _deadline(self, since: float) -> float:
        return since + self._limits.send_timeout if self._limits.send_timeout > 0 else NEVER

    def opened(self, producer_id: int) -> None:
        """Begin on a new connection: everything without a receipt is to be written on it."""
        self._producer_id = producer_id
        self._written = 0

    def lost(self) -> list[UnconfirmedEntry]:
        """End with the connection: receipts that have not come never will, so what timed out is forgotten.

        Returns the entries of transactions of which one was written. They are not written again: without deduplication
        they would perhaps be stored twice, and a transaction can begin anew.
        """
        at_stake = {one.txn for one in itertools.islice(self._pending, self._written) if one.txn is not None}
        self._producer_id = None
        self._written = 0
        failed: list[UnconfirmedEntry] = []
        kept: deque[UnconfirmedEntry] = deque()
        for one in self._pending:
            if one.entry is None:
                continue
            if one.txn is not None and one.txn in at_stake:
                self.messages -= one.messages
                failed.append(one)
            else:
                kept.append(one)
        self._pending = kept
        self._memory.release(sum(one.size for one in failed))
        return failed

    def frames(self, bytes_max: int) -> list[bytes]:
        """Return frames to write now, some more than ``bytes_max`` at most, in pieces."""
        parts: list[bytes] = []
        size = 0
        if self._producer_id is None:
            return parts
        while self._written < len(self._pending) and size < bytes_max:
            one = self._pending[self._written]
            self._written += 1
            assert one.entry is not None, "what timed out unwritten is not in the queue"
            ids, size_of_it = (self._producer_id, one.sequence_id, max(one.messages, 1), one.highest), len(one.entry)
            if one.is_chunk or one.txn is not None:
                head = frame_head(c.CommandSend(*ids, one.is_chunk, one.txn, False, None, one.entry))
            else:
                head = send_head(*ids, size_of_it)
            parts += head, one.entry
            size += len(head) + size_of_it
        return parts

    def receipted(self, receipt: c.CommandSendReceipt) -> UnconfirmedEntry:
        """Take the entry that a receipt is for out of the queue. Raises ConnectionLostError if it is for no entry that
        waits, after which the order of receipts says nothing any more."""
        done = self._oldest(receipt.sequence_id)
        if done.places is not None and receipt.message_id is not None:
            done.places.append((receipt.message_id.ledger, receipt.message_id.entry))
        self.last_sequence_id = max(self.last_sequence_id, done.sequence_id, done.highest or 0)
        return done

    def refused(self, sequence_id: int) -> list[UnconfirmedEntry]:
        """Take the entry out that the broker will not have, and if it is a chunk, the others of its message: it will
        never be whole. Raises ConnectionLostError, as `receipted`."""
        done = self._oldest(sequence_id)
        if done.places is None:
            return [done]
        return [done, *self._take_out(lambda one: one.places is done.places)]

    def _take_out(self, wanted: Callable[[UnconfirmedEntry], bool]) -> list[UnconfirmedEntry]:
        """Take entries out that have met their fate; what was written keeps its place until its receipt comes."""
        found: list[UnconfirmedEntry] = []
        kept: deque[UnconfirmedEntry] = deque()
        for place, one in enumerate(self._pending):
            if one.entry is None or not wanted(one):
                kept.append(one)
                continue
            found.append(one)
            self.messages -= one.messages
            if place < self._written:
                kept.append(one.without_bytes())
        self._pending = kept
        self._memory.release(sum(one.size for one in found))
        return found

    def _oldest(self, sequence_id: int) -> UnconfirmedEntry:
        if not self._written or self._pending[0].sequence_id != sequence_id:
            expected = self._pending[0].sequence_id if self._written else None
            raise ConnectionLostError(
                f"{self.topic}: the broker answered message {sequence_id} where {expected} was to come"
            )
        self._written -= 1
        done = self._pending.popleft()
        if done.entry is not None:
            self.messages -= done.messages
            self._memory.release(done.size)
        if not self._pending:
            self._wait.nothing_else()
        return done

    def expire(self, now: float, now_ms: int) -> list[UnconfirmedEntry]:
        """Return entries whose time is over; if one of them comes to be stored all the same, that is not reported."""
        if self._limits.send_timeout > 0 and self._wait.since + self._limits.send_timeout <= now:
            self.close_batches(now, now_ms)
        return [] if self.next_deadline > now else self._take_out(lambda one: one.deadline <= now)

    def give_up(self) -> list[UnconfirmedEntry]:
        """Empty the queue; returns what has met no fate."""
        self.close_batches(0.0, 0)
        left = [one for one in self._pending if one.entry is not None]
        self._pending.clear()
        self._written = 0
        self.messages = 0
        self._memory.release(sum(one.size for one in left))
        return left

    @property
    def size(self) -> int:
        """Bytes of what has met no fate, as the client's memory counts them."""
        return self._open.size + sum(one.size for one in self._pending)

    def check(self) -> None:
        """Assert what must always hold."""
        assert 0 <= self._written <= len(self._pending)
        assert self._producer_id is not None or not self._written
        assert all(one.entry is not None for one in list(self._pending)[self._written :]), "unwritten, without bytes"
        waiting = sum(one.messages for one in self._pending if one.entry is not None)
        assert self.messages == waiting + self._open.messages
        assert (self._wait.since == NEVER) == (self._wait.until == NEVER) == (not self._open.messages)


def _uncut(message: OutgoingMessage) -> int:
    """Return about how much of a message stands in each of its chunks."""
    keys = len(message.key or "") + len(message.ordering_key or b"")
    return keys + sum(len(name) + len(value) for name, value in message.properties)
