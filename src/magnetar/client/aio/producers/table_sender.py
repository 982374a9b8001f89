"""How a producer sends tables: entries are made of rows as fast as they are stored, and wait in its queue as any do.

What is on its way is bounded by bytes. Sequence ids are taken entry by entry, so that messages which are sent meanwhile
come between two entries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.aio.client_environment import Environment
from magnetar.client.aio.topics.lazy_partition import LazyPartition
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.aio.topics.topic_producer import TopicProducer
from magnetar.client.columns.given_tables import batches_of, definition_of
from magnetar.client.columns.table_writer import TableWriter
from magnetar.client.errors import MessageTooLargeError
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker
from magnetar.client.machines.outgoing.partition_router import PartitionRouter, PartitionsRoutingMode
from magnetar.columnar.entries.packer import Packer
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.batches import BATCH_MESSAGES_MAX, Batch

if TYPE_CHECKING:
    from magnetar.client.machines.message_id import MessageId
    from magnetar.columnar.row_router import Rows

_FLIGHT_BYTES: Final = 16 << 20
"""Bytes of entries without a receipt, from which a table waits."""
_TURN_BYTES: Final = 256 << 10
"""Bytes of entries that are made in one turn of the loop."""
_SCHEMA: Final = pa.schema(
    [("__topic", pa.string()), ("__ledgerId", pa.int64()), ("__entryId", pa.int64()), ("messages", pa.int64())]
)


class _Sent:
    """What is on its way of one table; the token of each of its entries."""

    def __init__(self) -> None:
        self.flight = 0
        self.entries: list[tuple[TopicProducer, EntryFate]] = []
        self.error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def below(self, flight: int) -> None:
        """Wait until no more than so many bytes are on their way. Raises why an entry failed."""
        while self.flight > flight and self.error is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.error is not None:
            raise self.error

    def landed(self, size: int) -> None:
        """Note that the fate of so many bytes is known."""
        self.flight -= size
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _EntryToken:
    """Hears the fate of one entry."""

    __slots__ = ("_rows", "_sent", "_size")

    def __init__(self, sent: _Sent, size: int, rows: tuple[int, int]) -> None:
        self._sent, self._size, self._rows = sent, size, rows

    def done(self) -> bool:
        return False

    def set_result(self, _: MessageId) -> None:
        self._sent.landed(self._size)

    def set_exception(self, error: BaseException) -> None:
        if self._sent.error is None:
            error.add_note(f"this was about rows {self._rows[0]} to {self._rows[1]} of the table")
            self._sent.error = error
        self._sent.landed(self._size)

    def exception(self) -> None:
        return None


class TableSender:
    """Sends the tables of one producer."""

    def __init__(
        self,
        topic: str,
        producers: Sequence[TopicProducer | LazyPartition],
        environment: Environment,
        options: ProducerOptions,
        router: PartitionRouter,
    ) -> None:
        """``producers`` may grow. Raises InvalidValueError for what cannot send tables."""
        if router.mode is PartitionsRoutingMode.CustomPartition:
            raise InvalidValueError(
                f"{topic}: a message_router is asked about messages, of which a table has none; give the rows a column "
                "__partition, and the producer another message_routing_mode"
            )
        self._producers = producers
        self._environment = environment
        self._options = options
        limits = options.limits
        messages = limits.batch_messages if limits.batch_messages > 0 else BATCH_MESSAGES_MAX
        only = router.chance if router.mode is PartitionsRoutingMode.UseSinglePartition else None
        self._writer = TableWriter(
            topic, self._partitions, definition_of(options.schema), router.hash_of, messages, only
        )
        self._packers: dict[int, tuple[EntryMaker, Packer]] = {}

    def _partitions(self) -> int:
        return 0 if self._producers[0].partition < 0 else len(self._producers)

    async def send(self, table: Any) -> Any:
        """Send all rows, and return where they are, once they are stored."""
        sent, first = _Sent(), 0
        for batch in batches_of(table):
            for rows in self._writer.rows(batch):
                await self._send_rows(rows, first, sent)
            first += batch.num_rows
        await sent.below(0)
        return _places(sent.entries)

    def _packer(self, one: TopicProducer) -> Packer:
        queue, limits = one.usable(), self._options.limits
        maker = queue.maker
        known = self._packers.get(one.partition)
        if known is not None and known[0] is maker:
            return known[1]
        packer = Packer(
            maker.producer_name,
            compression=maker.compression,
            max_messages=limits.batch_messages if limits.batch_messages > 0 else BATCH_MESSAGES_MAX,
            max_bytes=queue.batch_bytes,
            schema_version=maker.schema_version,
            seal=maker.seal,
        )
        self._packers[one.partition] = maker, packer
        return packer

    async def _send_rows(self, rows: Rows, first_row: int, sent: _Sent) -> None:
        one = self._producers[max(rows.partition, 0)]
        if isinstance(one, LazyPartition):
            one = await one.opened()
        picked, start, turn = rows.picked, 0, 0
        ids = np.zeros(len(picked), np.int64)
        packing = None
        while start < len(picked):
            await sent.below(_FLIGHT_BYTES)
            await one.room(of_memory=True)
            if turn >= _TURN_BYTES:
                turn = 0
                await asyncio.sleep(0)
            packer = self._packer(one)
            if packing is None or packing[0] is not packer or ids[start] != one.usable().next_sequence_id:
                # From here on: messages came between, or the producer was opened anew under another name.
                picked, ids, start = picked[start:], np.arange(len(picked) - start, dtype=np.int64), 0
                ids += one.usable().next_sequence_id
                packing = packer, packer.pack(self._environment.clock.now_ms(), rows.messages, picked, ids)
            batch = next(packing[1])
            stop = start + batch.messages
            about = first_row + int(picked[start]), first_row + int(picked[stop - 1])
            fate = one.add_made(self._entries(one, packer, batch, about), batch)
            turn += len(batch.entry)
            sent.flight += len(batch.entry)
            sent.entries.append((one, fate))
            fate.tokens.append((0, _EntryToken(sent, len(batch.entry), about)))
            start = stop

    def _entries(self, one: TopicProducer, packer: Packer, batch: Batch, about: tuple[int, int]) -> list[bytes]:
        most = one.usable().max_message_size
        if len(batch.entry) <= most:
            return [batch.entry]
        if batch.messages == 1 and self._options.limits.chunking:
            chunks = packer.chunks(most)
            if chunks:
                return chunks
        chunks_help = not (batch.messages == 1 and self._options.limits.chunking)
        error = MessageTooLargeError(one.topic, len(batch.entry), most, chunkable=chunks_help)
        error.add_note(f"this was about rows {about[0]} to {about[1]} of the table; those before are sent")
        raise error


def _places(entries: list[tuple[TopicProducer, EntryFate]]) -> Any:
    ids = [fate.message_id(0) for _, fate in entries]
    columns = [
        [one.topic for one, _ in entries],
        [found.ledger_id() for found in ids],
        [found.entry_id() for found in ids],
        [fate.messages for _, fate in entries],
    ]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)
