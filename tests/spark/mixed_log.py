"""A topic with everything in it that a reader has to see through: batches, chunks, transactions, their markers.

Written entry by entry with a raw client, so that it can be made on any broker; `tests/spark/test_borders.py` reads it
in all ranges.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.rawclient import RawClient, RawProducer
from magnetar.testing.rawtransaction import RawTransaction

COORDINATOR: Final = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
HOUR_MS: Final = 3_600_000


class Written(NamedTuple):
    """What stands in the log."""

    owned: list[list[bytes]]
    """Per entry: what a reader gets for it. A message in chunks is at its first one."""
    stable: int
    """Entries that can be read while the last transaction is open."""


class _Author:
    def __init__(self, client: RawClient, producers: dict[str, RawProducer]) -> None:
        self.client = client
        self._producers = producers
        self.owned: list[list[bytes]] = []

    async def write(
        self, metadata: EntryMetadata, payload: bytes, owned: list[bytes], txn: RawTransaction | None = None
    ) -> None:
        producer = self._producers[metadata.producer_name]
        entry = build_entry(metadata, payload)
        count = metadata.num_messages_in_batch or 1
        sent = producer.send(
            b"",
            entry=entry,
            count=count,
            sequence_id=metadata.sequence_id,
            txn=None if txn is None else txn.id,
            chunk=metadata.uuid is not None,
        )
        await producer.receipt(sent)
        self.owned.append(owned)

    async def single(self, value: bytes, number: int) -> None:
        await self.write(EntryMetadata("main", number, _now()), value, [value])

    async def batch(self, values: list[bytes], number: int) -> None:
        payload = join_batch((SingleMessageMetadata(), value) for value in values)
        metadata = EntryMetadata("main", number, _now(), num_messages_in_batch=len(values))
        await self.write(metadata, payload, values)

    async def chunk(
        self, producer: str, piece: int, pieces: int, payload: bytes, owned: list[bytes], at: int = 0
    ) -> None:
        metadata = EntryMetadata(
            producer, 7, at or _now(), uuid=f"{producer}-7", num_chunks_from_msg=pieces, chunk_id=piece,
            total_chunk_msg_size=2 * pieces,
        )  # fmt: skip
        await self.write(metadata, payload, owned)

    async def in_transaction(self, txn: RawTransaction, value: bytes, number: int, *, commits: bool) -> None:
        metadata = EntryMetadata("txn", number, _now(), txn=txn.id)
        await self.write(metadata, value, [value] if commits else [], txn)

    async def end(self, txn: RawTransaction, *, commit: bool) -> None:
        await (txn.commit() if commit else txn.abort())
        self.owned.append([])


def _now() -> int:
    return int(time.time() * 1000)


async def write_mixed(client: RawClient, topic: str) -> Written:
    """Write the log on an empty topic. The last transaction stays open, and what follows it cannot be read."""
    await client.lookup(COORDINATOR)
    assert (
        await client.request(c.CommandTcClientConnectRequest(client.new_id(), 0), c.CommandTcClientConnectResponse)
    ).error is None
    producers = {name: await client.producer(topic, name) for name in ("main", "a", "b", "dead", "txn")}
    author = _Author(client, producers)
    await author.single(b"m0", 0)
    await author.batch([b"m1", b"m2", b"m3"], 3)
    await author.chunk("a", 0, 2, b"a0", [b"a0a1"])
    aborted = await RawTransaction.begin(client)
    await aborted.add_partitions(topic)
    await author.in_transaction(aborted, b"x1", 0, commits=False)
    await author.chunk("b", 0, 3, b"b0", [b"b0b1b2"])
    await author.chunk("a", 1, 2, b"a1", [])
    await author.end(aborted, commit=False)
    await author.chunk("b", 1, 3, b"b1", [])
    await author.single(b"m4", 4)
    committed = await RawTransaction.begin(client)
    await committed.add_partitions(topic)
    await author.in_transaction(committed, b"c1", 1, commits=True)
    await author.chunk("b", 2, 3, b"b2", [])
    await author.end(committed, commit=True)
    # Its producer died an hour ago, which no reader waits for.
    await author.chunk("dead", 0, 3, b"d0", [], _now() - HOUR_MS)
    await author.single(b"m5", 5)
    last = await RawTransaction.begin(client)
    await last.add_partitions(topic)
    await author.in_transaction(last, b"x2", 2, commits=False)
    await author.end(last, commit=False)
    stable = len(author.owned)
    still_open = await RawTransaction.begin(client, ttl_ms=600_000)
    await still_open.add_partitions(topic)
    await author.in_transaction(still_open, b"x3", 3, commits=False)
    await author.single(b"hidden", 6)
    return Written(author.owned, stable)
