"""How a consumer receives tables: entries are taken from its queues as they come, and put back if none comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.aio.connections.wire_connection import WireConnection
from magnetar.client.aio.consumers.ready_messages import ReadyMessages
from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.columns.given_rows import GivenRows
from magnetar.client.columns.given_tables import definition_of
from magnetar.client.columns.table_ids import RowRange, row_ranges
from magnetar.client.columns.table_reader import DamagedEntryError, TableReader, blocks, rows_of
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.message_queue import QueuedEntry
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.model.names import TopicName
from magnetar.model.schemas import SchemaDefinition
from magnetar.protocol import commands as c

_VERSIONS_MAX: Final = 4_096
_NOTHING: Final = GivenRows()
_Taken = tuple[TopicConsumer, int, QueuedEntry]
"""An entry, whose it is, and the generation of its queue."""


class TableReceiver:
    """Receives the tables of one consumer."""

    def __init__(self, consumer: ReadyMessages[Any], schema: c.Schema | None) -> None:
        self._consumer = consumer
        self._definition = definition_of(schema)
        self._versions: dict[str, dict[bytes, SchemaDefinition]] = {}
        self._readers: dict[tuple[str, bool], TableReader] = {}
        self._given: dict[str, GivenRows] = {}
        """By topic: what may be acknowledged."""

    async def receive(self, max_rows: int, max_wait: float, metadata: str) -> Any:
        """Return a table; see `Consumer.receive_table`."""
        if max_rows < 1 or max_wait < 0:
            raise InvalidValueError("max_rows is above 0, max_wait not below")
        several = self._consumer.several
        reader = self._readers.get((metadata, several))
        if reader is None:
            reader = self._readers[metadata, several] = TableReader(self._definition, metadata, several=several)
        taken: list[_Taken] = []
        try:
            await self._take(taken, max_rows, asyncio.get_running_loop().time() + max_wait)
            table = await self._table(reader, taken)
        except BaseException:
            for one, generation, entry in reversed(taken):
                one.consumption.put_back([entry], generation)
                self._consumer.has_again(one)
            raise
        for one, part in _neighbours(taken):
            self._given.setdefault(one.topic, GivenRows()).add(part)
        return table

    async def _take(self, taken: list[_Taken], max_rows: int, deadline: float) -> None:
        consumer, loop, rows = self._consumer, asyncio.get_running_loop(), 0
        while rows < max_rows:
            found = consumer.take_entries(max_rows - rows, quiet=bool(taken))
            taken += found
            rows += sum(entry.messages for _, _, entry in found)
            left = deadline - loop.time()
            if rows >= max_rows or left <= 0:
                return
            if not found and not await consumer.something(left):
                return

    async def _table(self, reader: TableReader, taken: list[_Taken]) -> Any:
        batches: list[Any] = []
        for one, part in _neighbours(taken):
            versions = await self._writers(one, part) if reader.wants_versions else {}
            decoder = reader.decoder(one.topic, versions)
            for block in blocks(part):
                entries = list(block)
                while entries:
                    try:
                        rows = rows_of(decoder, entries)
                    except DamagedEntryError as damage:
                        one.consumption.reject_taken(damage.entry)
                        one.settle_soon()
                        entries.remove(damage.entry)
                        taken[:] = [known for known in taken if known[2] is not damage.entry]
                        continue
                    if sum(batch.num_rows for batch in rows) < sum(entry.messages for entry in entries):
                        for entry in entries:
                            one.consumption.leave_out(entry)
                        one.settle_soon()
                    batches += rows
                    break
                await asyncio.sleep(0)
        return pa.Table.from_batches(batches, reader.schema)

    async def _writers(self, one: TopicConsumer, entries: Iterable[QueuedEntry]) -> dict[bytes, SchemaDefinition]:
        known = self._versions.setdefault(one.topic, {})
        for version in {entry.envelope.metadata.schema_version or b"" for entry in entries}:
            if version and version not in known:
                found = await _schema(one, version)
                if found is not None:
                    if len(known) >= _VERSIONS_MAX:
                        known.clear()
                    known[version] = found
        return known

    def acknowledge(self, table: Any, *, cumulative: bool) -> None:
        """Take the rows of a table as done with; with ``cumulative`` all before the last one of each topic, too.

        Raises InvalidValueError if one of them was not given, and then nothing is acknowledged.
        """
        ranges = list(row_ranges(table))
        members = {topic: self._consumer.member_of(topic) for topic in {one.topic for one in ranges}}
        for one in ranges:
            member = members[one.topic]
            size = member.consumption.acknowledgements.size_of((one.ledger, one.entry))
            self._given.get(member.topic, _NOTHING).check(one, size)
        if cumulative:
            for topic, last in {one.topic: one for one in ranges}.items():
                members[topic].consumption.acknowledge_cumulative(_id(last))
        else:
            for one in ranges:
                member = members[one.topic]
                for place in self._given[member.topic].places(one) or ((one.ledger, one.entry),):
                    member.consumption.acknowledge_range(place, one.first, one.stop, one.batch_size)
        for member in members.values():
            member.settle_soon()


async def _schema(one: TopicConsumer, version: bytes) -> SchemaDefinition | None:
    """Return a version of a topic's schema, None if there is none. Raises RefusedError, ClientTimeoutError."""
    topic = TopicName.parse(one.topic).parent.fqn
    what = f"ask for the schema of {topic}"

    async def ask(connection: WireConnection, deadline: float) -> c.CommandGetSchemaResponse:
        command = c.CommandGetSchema(connection.new_request_id(), topic, version)
        answer = await connection.request(command, c.CommandGetSchemaResponse, what, deadline=deadline)
        if answer.error is not None and answer.error is not ServerError.TopicNotFound:
            raise connection.refused(what, answer.error, answer.message)
        return answer

    given = (await one.requests.patiently(what, ask)).schema
    return None if given is None else SchemaDefinition(given.type, given.schema_data, dict(given.properties))


def _neighbours(taken: list[_Taken]) -> list[tuple[TopicConsumer, list[QueuedEntry]]]:
    grouped = groupby(taken, key=lambda one: one[0].topic)
    runs = [list(run) for _, run in grouped]
    return [(run[0][0], [entry for _, _, entry in run]) for run in runs]


def _id(one: RowRange) -> MessageId:
    index = one.stop - 1 if one.batch_size else -1
    return MessageId(-1, one.ledger, one.entry, index, batch_size=one.batch_size)
