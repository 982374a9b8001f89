"""Sends what lies in an outbox, in its order, and deletes what has its receipt.

A relay that dies after a receipt and before the deletion sends the same messages again, with the same sequence ids and
the same producer name: a broker that removes duplicates (brokerDeduplicationEnabled, or the namespace's policy) stores
them once. For that, messages go one by one and not in batches, whose bounds could be others the second time. Of two
relays of one name the second is refused by the broker, and tries again until the first has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from magnetar.client.aio.client import Client
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.arguments.kinds import instance
from magnetar.client.databases.outbox import OutboxRow, OutboxTable
from magnetar.client.databases.sql_dialect import SqlConnection
from magnetar.client.databases.table_arguments import checked
from magnetar.client.errors import MessageTooLargeError
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.outgoing.partition_router import PartitionsRoutingMode, RoutedMessage
from magnetar.model.hashing import java_string_hash

Result = TypeVar("Result")

_ROWS: Final = 1_000
"""Sent at a time at most, of one topic."""
_PAUSE_MOST: Final = 60.0
_OUTBOX: Final = instance("an OutboxTable", OutboxTable)
_log = logging.getLogger(__name__)


class OutboxRelay:
    """Sends the messages of one outbox; one at a time has its name."""

    def __init__(
        self,
        client: Client,
        outbox: OutboxTable,
        connect: Callable[[], SqlConnection],
        *,
        producer_name: str = "outbox",
        poll_seconds: float = 1.0,
    ) -> None:
        """``connect`` returns a new connection, which the relay uses in threads, one at a time; sqlite3's needs
        ``check_same_thread=False``.

        ``producer_name`` stays the same for ever. Raises ArgumentError.
        """
        checked(
            "OutboxRelay", client=client, connect=connect, producer_name=producer_name, poll_seconds=poll_seconds
        )  # fmt: skip
        _OUTBOX.check("outbox", outbox, "OutboxRelay")
        self._client = client
        self._outbox = outbox
        self._connect = connect
        self._name = producer_name
        self._poll = poll_seconds
        self._producers: dict[str, Producer[bytes]] = {}
        self._wake = asyncio.Event()
        self._stopping = False
        self._troubled: dict[str, tuple[int, float]] = {}
        """By topics with trouble: how often in turn, and when they are tried again."""

    def wake(self) -> None:
        """Have it look now, as after a commit of this process; call it on the loop."""
        self._wake.set()

    def stop(self) -> None:
        """Have `run` end once what it has sent is deleted."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Send whatever is there and comes, until `stop`; trouble is logged, and tried again after a pause.

        Trouble with one topic holds up no other. Cancelled, it leaves the producers' name to the next relay.
        """
        failures = 0
        try:
            while not self._stopping:
                self._wake.clear()
                try:
                    sent = await self._send_due()
                    failures = 0
                except Exception as error:
                    failures += 1
                    sent = 0
                    _log.warning("the outbox could not be read, which is tried again: %s", error)
                if not sent:
                    try:
                        async with asyncio.timeout(self._pause(failures)):
                            await self._wake.wait()
                    except TimeoutError:
                        pass
        finally:
            await self._close_producers()

    def _pause(self, failures: int) -> float:
        return min(self._poll * 2.0 ** min(failures, 10), max(_PAUSE_MOST, self._poll))

    async def _send_due(self) -> int:
        """Send what waits for topics whose last trouble is long enough ago."""
        now = asyncio.get_running_loop().time
        topics = await self._work(self._outbox.topics)
        self._troubled = {topic: self._troubled[topic] for topic in topics if topic in self._troubled}
        due = [topic for topic in topics if self._troubled.get(topic, (0, 0.0))[1] <= now()]
        sent, troubles = await self._send(due, stoppable=True)
        for topic in due:
            failures = self._troubled.pop(topic, (0, 0.0))[0] + 1
            if topic in troubles:
                self._troubled[topic] = failures, now() + self._pause(failures)
                _log.warning("the outbox of %s could not be sent, which is tried again: %s", topic, troubles[topic])
        return sent

    async def send_waiting(self) -> int:
        """Send what waits, some thousand messages of each topic at most, and delete it; returns how many.

        Raises what the database or the broker refuses, after all topics had their turn; what has no receipt then is
        sent again the next time.
        """
        sent, troubles = await self._send(await self._work(self._outbox.topics), stoppable=False)
        for trouble in troubles.values():
            raise trouble
        return sent

    async def _send(self, topics: Sequence[str], *, stoppable: bool) -> tuple[int, dict[str, Exception]]:
        """Send what waits for some topics; returns how many messages, and what was refused."""
        sent = 0
        troubles: dict[str, Exception] = {}
        for topic in topics:
            if stoppable and self._stopping:
                break
            try:
                stored, trouble = await self._send_of(topic)
                sent += stored
            except Exception as error:
                trouble = error
            if trouble is not None:
                troubles[topic] = trouble
                if (producer := self._producers.pop(topic, None)) is not None:
                    await asyncio.gather(producer.close(), return_exceptions=True)
        return sent, troubles

    async def _send_of(self, topic: str) -> tuple[int, Exception | None]:
        producer = await self._producer(topic)
        above = producer.last_sequence_id()
        await self._work(partial(self._outbox.number, topic=topic, above=above, limit=_ROWS))
        rows = await self._work(partial(self._outbox.numbered, topic=topic, limit=_ROWS))
        fates = await asyncio.gather(*[producer.send_message(_message(row)) for row in rows], return_exceptions=True)
        errors = [(row, fate) for row, fate in zip(rows, fates, strict=True) if isinstance(fate, BaseException)]
        stored = [row for row, fate in zip(rows, fates, strict=True) if not isinstance(fate, BaseException)]
        await self._work(partial(self._outbox.delete, rows=stored))
        if too_large := [row for row, error in errors if isinstance(error, MessageTooLargeError)]:
            # Those after it are stored: with its number it would count as one of them when the broker takes it at last.
            await self._work(partial(self._outbox.forget_numbers, rows=too_large))
        return len(stored), next((error for _, error in errors if isinstance(error, Exception)), None)

    async def _producer(self, topic: str) -> Producer[bytes]:
        found = self._producers.get(topic)
        if found is None:
            found = self._producers[topic] = await self._client.create_producer(
                topic,
                self._name,
                send_timeout_millis=0,
                max_pending_messages=0,
                message_routing_mode=PartitionsRoutingMode.CustomPartition,
                message_router=_partition,
            )
        return found

    async def _work(self, do: Callable[[SqlConnection], Result]) -> Result:
        """Do something in a transaction of its own, in a thread."""

        def in_thread() -> Result:
            connection = self._connect()
            try:
                result = do(connection)
                connection.commit()
                return result
            finally:
                connection.close()

        return await asyncio.to_thread(in_thread)

    async def _close_producers(self) -> None:
        producers, self._producers = list(self._producers.values()), {}
        await asyncio.gather(*(one.close() for one in producers), return_exceptions=True)


def _message(row: OutboxRow) -> OutgoingMessage:
    return OutgoingMessage(
        row.payload, tuple(row.properties.items()), row.partition_key, event_time=row.event_timestamp or 0,
        deliver_at=row.deliver_at or 0, sequence_id=row.sequence_id,
    )  # fmt: skip


def _partition(message: RoutedMessage, count: int) -> int:
    """Return the same partition for a message each time, as long as their number stays."""
    if key := message.partition_key():
        return java_string_hash(key) % count
    return (message.sequence_id() or 0) % count
