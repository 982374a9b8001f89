"""What the session hands on, in which order, and when it stops reading, without a topic or a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection import listener as listening
from magnetar.broker.connection.bounds.outbox import Outbox
from magnetar.broker.connection.bounds.unsent_bytes import UnsentBytes
from magnetar.broker.connection.handlers import command_table
from magnetar.broker.connection.listener import Connections, Listener
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.broker.connection.producer_outbox import ProducerOutbox
from magnetar.broker.connection.session import Session
from magnetar.broker.topic.publish.producer import PendingEntry, Producer
from magnetar.model.errors import PersistenceError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.server import FROM_CLIENT
from magnetar.protocol.unparsed_commands import PART_IDS
from magnetar.testing.rawclient import make_entry
from tests.support.connections import FakeTransport, connected, fake_service, hang_up

ENTRY = make_entry(b"x", producer="p", sequence_id=1)
WINDOW = 10


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def sends(count: int, first: int = 0) -> bytes:
    fields = (1, None, False, None, False, None, ENTRY, True)
    return b"".join(codec.encode(c.CommandSend(1, first + i, *fields)) for i in range(count))


def publisher(
    connections: Connections, service: Any = None
) -> tuple[Listener, FakeTransport, ProducerOutbox, list[int]]:
    """A connection with one open producer that notes what is published."""
    service = service or fake_service(maxPendingPublishRequestsPerConnection=WINDOW)
    listener, transport = connected(connections, service)
    published: list[int] = []
    producer = Producer.__new__(Producer)
    cast(Any, producer).publish = lambda message: published.append(message.sequence_id)
    listener.session.producers[1] = producer
    return listener, transport, ProducerOutbox(listener.session, 1, cast(Any, None)), published


def results(count: int) -> Sequence[PendingEntry]:
    return [cast(PendingEntry, (None, i, i)) for i in range(count)]


# publish back-pressure -------------------------------------------------------------------------------------------


def test_reading_stops_at_the_limit_and_goes_on_at_half_of_it() -> None:
    """Too many pending publishes stop the reading of a connection until half of them are done (rule 3.3.10)."""

    async def scenario() -> None:
        listener, transport, connection, published = publisher(Connections())
        listener.data_received(sends(WINDOW - 1))
        assert transport.reading
        listener.data_received(sends(1))
        assert not transport.reading
        assert len(published) == WINDOW
        connection.receipts(3, 0, results(WINDOW // 2 - 1))
        assert not transport.reading
        connection.receipts(3, 4, results(1))
        assert transport.reading
        hang_up(listener)

    run(scenario)


def test_reading_stops_when_all_together_have_too_many_bytes_waiting() -> None:
    async def scenario() -> None:
        service = fake_service(maxMessagePublishBufferSizeInMB=1)
        journal = service.store.journal
        listener, transport, connection, _ = publisher(Connections(), service)
        quiet, calm = connected(Connections(), service)
        journal.pending_bytes = 1 << 20
        listener.data_received(sends(3))
        quiet.data_received(codec.encode(c.CommandPing()))
        assert not transport.reading
        assert calm.reading, "one that publishes nothing is not made to wait"
        connection.receipts(3, 0, results(1))
        assert not transport.reading
        journal.pending_bytes = 1 << 19
        connection.receipts(3, 1, results(1))
        assert transport.reading
        # with nothing of its own pending it always may
        journal.pending_bytes = 1 << 20
        listener.data_received(sends(1))
        assert not transport.reading
        connection.receipts(3, 2, results(2))
        assert transport.reading
        hang_up(listener, quiet)

    run(scenario)


@pytest.mark.parametrize("how", ["failed", "unstored", "dropped"])
def test_whatever_becomes_of_them_they_wait_no_longer(how: str) -> None:
    async def scenario() -> None:
        listener, transport, connection, _ = publisher(Connections())
        listener.data_received(sends(WINDOW))
        assert not transport.reading
        if how == "failed":
            some = cast(Sequence[PendingEntry], [SimpleNamespace(sequence_id=i) for i in range(WINDOW)])
            connection.failed(some, PersistenceError("the disk refused"))
        elif how == "unstored":
            connection.unstored(results(WINDOW), dropped=False)
        else:
            connection.dropped(WINDOW)
        assert transport.reading
        assert listener.session.pending_publishes == 0
        hang_up(listener)

    run(scenario)


def test_a_rate_limit_and_the_disk_each_hold_the_connection() -> None:
    async def scenario() -> None:
        listener, transport, connection, _ = publisher(Connections())
        listener.data_received(sends(WINDOW))
        listener.session.throttle(0.02)
        connection.receipts(3, 0, results(WINDOW))
        assert not transport.reading, "the rate limit still holds it"
        listener.data_received(sends(WINDOW))
        await asyncio.sleep(0.05)
        assert not transport.reading, "the disk still holds it"
        connection.receipts(3, WINDOW, results(WINDOW))
        assert transport.reading
        hang_up(listener)

    run(scenario)


def test_messages_larger_than_a_slice_come_in_order() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections(), fake_service())
        listener.data_received(sends(5_000))
        while len(published) < 5_000:
            before = len(published)
            await asyncio.sleep(0)
            assert len(published) > before
        assert published == list(range(5_000))
        hang_up(listener)

    run(scenario)


# acknowledgements ------------------------------------------------------------------------------------------------


class Noting:
    """A subscription that notes its calls."""

    def __init__(self) -> None:
        self.acks = self
        self.told: list[Any] = []
        self.name = "s"

    def take(self, consumer: object, ordinals: list[int], done: Callable[[], None] | None = None) -> None:
        self.told.append(("ack", list(ordinals)))
        if done is not None:
            done()

    def redeliver(self, consumer: object, ordinals: list[int] | None, epoch: int | None) -> None:
        self.told.append(("redeliver", ordinals))

    def flow(self, consumer: object, permits: int) -> None:
        self.told.append(("flow", permits))

    def remove_consumer(self, consumer: object) -> None:
        self.told.append("left")


def consumer_of(listener: Listener, consumer_id: int = 7) -> Noting:
    subscription = Noting()
    ledger = SimpleNamespace(id=1, entries=1_000, ordinal=0)
    table = SimpleNamespace(ledgers=[ledger], holding=lambda ordinal: ledger)
    log = SimpleNamespace(table=table, exact_ordinal=lambda position: position.entry)
    topic = SimpleNamespace(log=log, log_of=lambda subscription: log, consumer_gone=lambda subscription: None)
    held = OpenConsumer(cast(Any, topic), cast(Any, subscription), cast(Any, object()))
    listener.session.consumers[consumer_id] = held
    return subscription


def ack(*entries: int, **fields: Any) -> bytes:
    ids = tuple(c.MessageIdData(1, entry) for entry in entries)
    return codec.encode(c.CommandAck(7, c.AckType.Individual, ids, **fields))


def test_acknowledgements_of_one_segment_are_handed_over_once() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        listener.data_received(ack(1) + ack(2) + ack(5))
        assert subscription.told == [("ack", [1, 2, 5])]
        hang_up(listener)

    run(scenario)


@pytest.mark.parametrize(
    ("command", "then"),
    [
        (c.CommandCloseConsumer(7, 1), "left"),
        (c.CommandFlow(7, 5), ("flow", 5)),
        (c.CommandRedeliverUnacknowledgedMessages(7, (c.MessageIdData(1, 3),)), ("redeliver", [3])),
    ],
)
def test_acknowledgements_come_before_the_command_behind_them(command: c.Command, then: object) -> None:
    """An ACK before CLOSE_CONSUMER in one segment is handed over first; after the close it would belong to no
    consumer."""

    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        listener.data_received(ack(1) + ack(2) + codec.encode(command) + ack(4))
        assert subscription.told[:2] == [("ack", [1, 2]), then]
        hang_up(listener)

    run(scenario)


def test_acknowledgements_come_before_a_message_behind_them() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        subscription = consumer_of(listener)
        seen: list[int] = []
        cast(Any, listener.session.producers[1]).publish = lambda message: seen.append(len(subscription.told))
        listener.data_received(ack(1) + sends(1))
        assert seen == [1]
        assert published == []
        hang_up(listener)

    run(scenario)


def test_single_and_several_ids_keep_their_order() -> None:
    async def scenario() -> None:
        listener, transport = connected(Connections())
        subscription = consumer_of(listener)
        listener.data_received(ack(1) + ack(2, 3, request_id=9) + ack(4))
        assert subscription.told == [("ack", [1]), ("ack", [2, 3]), ("ack", [4])]
        await asyncio.sleep(0)
        assert [x.request_id for x in transport.heard() if isinstance(x, c.CommandAckResponse)] == [9]
        hang_up(listener)

    run(scenario)


def test_the_last_id_of_very_many_is_not_kept_back() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        cast(Any, listener.session.consumers[7]).ledger.entries = 100_000
        count = 20 * PART_IDS + 1
        listener.data_received(ack(*range(count)))
        for _ in range(100):
            await asyncio.sleep(0)
        assert sum(len(ordinals) for _, ordinals in subscription.told) == count
        hang_up(listener)

    run(scenario)


def test_a_lost_connection_holds_no_bytes() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        listener.data_received((1 << 20).to_bytes(4, "big") + b"\0" * 100_000)
        assert listener._protocol.held > 100_000
        hang_up(listener)
        assert listener._protocol.held == 0

    run(scenario)


def test_a_redelivery_may_name_an_entry_twice() -> None:
    async def scenario() -> None:
        listener, transport = connected(Connections())
        subscription = consumer_of(listener)
        twice = (c.MessageIdData(1, 3), c.MessageIdData(1, 3))
        listener.data_received(codec.encode(c.CommandRedeliverUnacknowledgedMessages(7, twice)))
        listener.data_received(codec.encode(c.CommandRedeliverUnacknowledgedMessages(7, ())))
        assert subscription.told == [("redeliver", [3, 3]), ("redeliver", None)]
        assert not transport.closing
        hang_up(listener)

    run(scenario)


def test_commands_of_consumers_that_are_not_open_are_nothing() -> None:
    async def scenario() -> None:
        listener, transport = connected(Connections())
        listener.data_received(ack(1) + codec.encode(c.CommandFlow(7, 1)) + codec.encode(c.CommandFlow(7, 0)))
        listener.data_received(codec.encode(c.CommandRedeliverUnacknowledgedMessages(7, (c.MessageIdData(1, 3),))))
        assert not transport.closing
        hang_up(listener)

    run(scenario)


# dispatch and outbox ---------------------------------------------------------------------------------------------


def test_every_command_of_a_client_has_a_handler() -> None:
    handshake = {c.CommandConnect, c.CommandPing, c.CommandPong}
    assert set(command_table.HANDLERS) == FROM_CLIENT | handshake


def test_nothing_but_connect_before_connect() -> None:
    async def scenario() -> None:
        for command in (c.CommandLookupTopic("t", 1), c.CommandFlow(1, 1), c.CommandAck(1, c.AckType.Individual, ())):
            listener = Listener(fake_service(), Connections())
            transport = FakeTransport(listener)
            listener.connection_made(transport)
            listener.data_received(codec.encode(command))
            assert transport.closing
            hang_up(listener)

    run(scenario)


def test_commands_behind_one_that_closes_are_not_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[int] = []

    def look_up(session: Session, command: c.CommandLookupTopic) -> None:
        handled.append(command.request_id)
        session.close("enough")

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: look_up})

    async def scenario() -> None:
        listener, transport = connected(Connections())
        listener.data_received(codec.encode(c.CommandLookupTopic("t", 1)) + codec.encode(c.CommandLookupTopic("t", 2)))
        listener.data_received(codec.encode(c.CommandLookupTopic("t", 3)))
        await asyncio.sleep(0)
        assert handled == [1]
        assert transport.closing
        hang_up(listener)

    run(scenario)


class Taker:
    unsent = 0

    def writable_again(self) -> None: ...

    def takes_too_much(self, unsent: int) -> None: ...


def outbox(transport: FakeTransport, on_writable: Callable[[], None], high: int = 1_000) -> Outbox:
    loop = asyncio.get_running_loop()
    return Outbox(loop, transport, on_writable, high, UnsentBytes(1 << 30, list), Taker())


def test_what_is_put_in_one_turn_leaves_in_one_write_in_order() -> None:
    async def scenario() -> None:
        transport = FakeTransport(asyncio.Protocol())
        out = outbox(transport, lambda: None)
        for i in range(10):
            out.put(b"%d" % i)
        out.parts.append(b"abc")
        out.grew(3)
        assert not transport.written
        await asyncio.sleep(0)
        assert transport.written == b"0123456789abc"
        assert out.writes == 1
        out.put(b"x" * 5_000)
        out.put(b"y" * 5_000)
        await asyncio.sleep(0)
        assert len(transport.written) == 10_013
        assert out.writes == 2
        assert out.total == 10_013

    run(scenario)


def test_high_water_is_told_and_so_is_its_end() -> None:
    async def scenario() -> None:
        told: list[bool] = []
        transport = FakeTransport(asyncio.Protocol())
        out = outbox(transport, lambda: told.append(out.writable))
        out.put(b"x" * 999)
        assert out.writable
        out.put(b"x")
        assert not out.writable
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert told == [True]
        out.pause()
        assert not out.writable
        out.resume()
        assert told == [True, True]

    run(scenario)


def test_a_lost_connection_is_written_nothing() -> None:
    async def scenario() -> None:
        told: list[int] = []
        transport = FakeTransport(asyncio.Protocol())
        out = outbox(transport, lambda: told.append(1))
        out.put(b"x" * 2_000)
        out.end()
        out.put(b"y")
        out.resume()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert transport.written == b""
        assert told == []

    run(scenario)
