"""SENDs and ACKs of several producers and consumers on one connection, mixed by a seed: the usual ones and odd ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.entries import (
    EncryptionKey,
    EntryMetadata,
    SingleMessageMetadata,
    build_entry,
    join_batch,
    metadata_of,
)
from magnetar.protocol.varints import varint

PLAIN, ONCE, SMALL_ONLY = (f"persistent://public/default/{name}" for name in ("plain", "once", "small-only"))
"""The second topic deduplicates; the third takes messages up to ``SMALL_BYTES``."""
SMALL_BYTES = 3000
_LATE_MS = (1, 10**15, 10**16)
"""Times of delivery: past, near and far, by the clock of a simulation."""
_RUN = (1, 2, 3, 5, 20, 60)
_FIRST = (0, 0, 5, 120, 16_000, 2**21 - 20, 2**40, 2**62)
"""First sequence ids: such as become a byte longer on the way, and such as do not."""


class Mixture:
    """What the seed makes of it; the ids of producers and consumers come from whoever opens them."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.first_id = rng.choice((0, 100, 120, 300, 16_370))
        """Where the ids of requests, producers and consumers begin: they have one, two or three bytes."""
        topics = [PLAIN] + [rng.choice((PLAIN, ONCE, SMALL_ONLY)) for _ in range(rng.randint(0, 4))]
        self.producers = [(topic, f"p{number}") for number, topic in enumerate(topics)]
        self.subscriptions = [
            (rng.choice(topics), f"s{number}", rng.choice(list(c.SubType))) for number in range(rng.randint(1, 4))
        ]
        self._next = [rng.choice(_FIRST) for _ in topics]
        self._counted = self._delayed = False

    def sends(self, ids: Sequence[int], count: int) -> list[bytes]:
        """Frames of about ``count`` SENDs of the producers with these ids."""
        found: list[bytes] = []
        while len(found) < count:
            at = self.rng.randrange(len(ids))
            self._counted, self._delayed = self.rng.random() < 0.5, self.rng.random() < 0.15
            for _ in range(self.rng.choice((1, 1, 3))):
                found += self._some(at, ids[at])
        return found

    def _some(self, at: int, producer_id: int) -> Iterator[bytes]:
        rng = self.rng
        if rng.random() < 0.7:
            size, vary = rng.choice((0, 1, 10, 100)), rng.random() < 0.3
            for _ in range(rng.choice(_RUN)):
                yield self._plain(at, producer_id, bytes(rng.randint(0, size) if vary else size))
            return
        kind = rng.randrange(7)
        last = self._next[at]
        if kind == 0:
            for again in range(max(0, last - rng.randint(1, 30)), last + rng.randint(0, 4)):
                self._next[at] = again
                yield self._plain(at, producer_id, b"again")
            self._next[at] = max(last, self._next[at])
        elif kind == 1:
            self._next[at] += rng.choice((1, 100, 1000))
        elif kind == 2:
            yield self._batch(at, producer_id, rng.randint(1, rng.choice((9, 9, 80))))
        elif kind == 3:
            chunks = rng.randint(2, 4)
            for chunk in range(chunks):
                self._next[at] = last
                of = {"num_chunks_from_msg": chunks, "total_chunk_msg_size": 5 * chunks, "chunk_id": chunk}
                yield self._plain(at, producer_id, b"chunk", is_chunk=True, uuid=f"{at}-{last}", **of)
        elif kind == 4:
            frame = bytearray(self._plain(at, producer_id, b"wrong checksum"))
            frame[-1] ^= 1
            yield bytes(frame)
        elif kind == 5:
            yield self._plain(at, producer_id, bytes(rng.choice((1500, 4000, 4096, 5000, 15_000))))
        else:
            yield codec.encode(c.CommandPing())

    def _plain(self, at: int, producer_id: int, payload: bytes, *, is_chunk: bool = False, **more: object) -> bytes:
        rng, sequence_id = self.rng, self._next[at]
        self._next[at] += 1
        if rng.random() < 0.2:
            more["partition_key"] = rng.choice("abcdefgh")
        if rng.random() < 0.1:
            more["properties"] = (("x", rng.choice(("1", "\u0098\u0001", "v" * 40))),)
        if self._delayed and rng.random() < 0.2:
            more["deliver_at_time"] = rng.choice(_LATE_MS)
        if rng.random() < 0.05:
            more["encryption_keys"] = (EncryptionKey("k", b"v"),)
        metadata = EntryMetadata(self.producers[at][1], sequence_id, 1, **more)  # type: ignore[arg-type]
        return self._frame(producer_id, sequence_id, build_entry(metadata, payload), is_chunk)

    def _frame(self, producer_id: int, sequence_id: int, entry: bytes, is_chunk: bool) -> bytes:
        if is_chunk or not self._counted:
            return codec.encode(c.CommandSend(producer_id, sequence_id, 1, None, is_chunk, None, False, None, entry))
        fields = b"\x08" + varint(producer_id) + b"\x10" + varint(sequence_id) + b"\x18\x01"
        command = b"\x08\x06\x32" + varint(len(fields)) + fields
        return (len(command) + 4 + len(entry)).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command + entry

    def _batch(self, at: int, producer_id: int, count: int) -> bytes:
        first = self._next[at]
        self._next[at] = first + count
        last = self.rng.choice((None, first + count - 1))
        metadata = EntryMetadata(self.producers[at][1], first, 1, num_messages_in_batch=count, highest_sequence_id=last)
        entry = build_entry(metadata, join_batch([(SingleMessageMetadata(), b"m")] * count))
        return codec.encode(c.CommandSend(producer_id, first, count, last, False, None, False, None, entry))

    def acks(self, delivered: Mapping[int, Sequence[c.CommandMessage]]) -> list[bytes]:
        """Frames of ACKs of what the consumers with these ids got; some are of nothing that there is."""
        owners = [consumer for consumer, messages in delivered.items() if messages]
        some = [self.rng.choice(owners) for _ in range(self.rng.randint(3, 40))] if owners else []
        return [frame for consumer in some for frame in self._acks_of(consumer, delivered[consumer])]

    def _acks_of(self, consumer: int, messages: Sequence[c.CommandMessage]) -> Iterator[bytes]:
        rng = self.rng
        at = rng.randrange(len(messages))
        row = messages[at : at + rng.choice((1, 2, 5, 30, 100))]
        ids = [
            c.MessageIdData(*one.message_id[:2]) for one in (row if rng.random() < 0.8 else rng.sample(row, len(row)))
        ]
        kind = rng.randrange(9)
        if kind < 3:
            yield from (self._ack(consumer, (one,)) for one in ids)
        elif kind < 5:
            yield self._ack(consumer, tuple(ids))
        elif kind == 5:
            yield self._ack(consumer, (ids[0],), c.AckType.Cumulative)
        elif kind == 6:
            nowhere = rng.choice(((ids[0].ledger, 2**62), (2**62, 3), (ids[0].ledger + 1000, 0), (0, 0)))
            yield self._ack(consumer, (c.MessageIdData(*nowhere), *ids[: rng.randint(0, 2)]))
            yield from (self._ack(consumer, (one._replace(entry=one.entry + 1000),)) for one in ids)
        elif kind == 7:
            yield self._ack(consumer + 7000, (ids[0],))
        else:
            parts = [part for one in islice(messages, at, at + 60) for part in self._part(one)][:6]
            together = rng.random() < 0.5
            for several in [tuple(parts)] if together and parts else [(part,) for part in parts]:
                cumulative = len(several) == 1 and rng.random() < 0.2
                yield self._ack(consumer, several, c.AckType.Cumulative if cumulative else c.AckType.Individual)

    def _part(self, message: c.CommandMessage) -> Iterator[c.MessageIdData]:
        """Some messages of it, if it is a batch.

        The size is as it is: a wrong one is believed or not, which depends on whether the entry is still in memory.
        """
        count = metadata_of(message.entry).num_messages_in_batch
        if count is None:
            return
        bits = self.rng.getrandbits(count)
        words = [bits >> 64 * at & (1 << 64) - 1 for at in range((count + 63) // 64)]
        longs = tuple(word - (1 << 64) if word >> 63 else word for word in words)
        yield c.MessageIdData(*message.message_id[:2], ack_set=longs, batch_size=count)

    def _ack(
        self, consumer: int, ids: tuple[c.MessageIdData, ...], ack_type: c.AckType = c.AckType.Individual
    ) -> bytes:
        request_id = self.rng.randrange(1 << 30) if self.rng.random() < 0.12 else None
        return codec.encode(c.CommandAck(consumer, ack_type, ids, request_id=request_id))

    def mixed(self, *rows: Sequence[bytes]) -> list[bytes]:
        """All of ``rows``, each in its order, in stretches."""
        left = [list(row) for row in rows]
        found: list[bytes] = []
        while any(left):
            row = self.rng.choice([row for row in left if row])
            many = self.rng.choice((1, 2, 10, 50))
            found += row[:many]
            del row[:many]
        return found
