"""What the session hands on, in which order, and when it stops reading, without a topic or a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, cast

import pytest

from magnetar.broker.connection import listener as listening
from magnetar.broker.connection.bounds.turns import TURN
from magnetar.broker.connection.handlers import command_table
from magnetar.broker.connection.listener import Connections, Listener
from magnetar.broker.connection.open_handles import PendingOpen
from magnetar.broker.connection.session import Session
from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.model.errors import ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.unparsed_commands import PART_IDS
from tests.support.connections import FakeTransport, connected, fake_service, hang_up, pongs, publisher, sends
from tests.support.noted_acks import ack, consumer_of


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


# acknowledgements ------------------------------------------------------------------------------------------------


def test_acknowledgements_of_one_segment_are_handed_over_once() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        listener.data_received(ack(1) + ack(2) + ack(5))
        assert subscription.calls == [("ack", [1, 2, 5])]
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
        assert subscription.calls[:2] == [("ack", [1, 2]), then]
        hang_up(listener)

    run(scenario)


def test_a_consumer_whose_connection_ends_is_lost_and_has_not_left() -> None:
    """What it had out is looked at before it goes to another (docs/decisions/070)."""

    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        hang_up(listener)
        assert subscription.calls == ["lost"]

    run(scenario)


def test_consumers_are_served_again_when_the_socket_takes_more() -> None:
    async def scenario() -> None:
        listener, transport = connected(
            Connections(), fake_service(pulsarChannelWriteBufferHighWaterMark=100), deaf=True
        )
        subscription = consumer_of(listener)
        listener.session.consumers[8] = PendingOpen()
        listener.session.send(c.CommandError(1, ServerError.UnknownError, "x" * 300))
        await asyncio.sleep(0)
        assert not listener.session.out.writable
        assert subscription.calls == []
        transport.take()
        assert subscription.calls == ["resumed"]
        hang_up(listener)

    run(scenario)


def test_acknowledgements_of_many_ids_use_a_turn_up() -> None:
    """Single ones cost nothing, ids of one command do: the rest waits until others had their turn."""

    async def scenario() -> None:
        listener, transport = connected(Connections())
        subscription = consumer_of(listener)
        listener.data_received(ack(*range(200)) * 100)
        handed = sum(len(ordinals) for _, ordinals in subscription.calls)
        assert 0 < handed <= 8 * TURN + 200
        assert not transport.reading
        for _ in range(20):
            await asyncio.sleep(0)
        assert sum(len(ordinals) for _, ordinals in subscription.calls) == 200 * 100
        hang_up(listener)

    run(scenario)


def test_redeliveries_of_many_ids_use_a_turn_up() -> None:
    """As acknowledgements do."""

    async def scenario() -> None:
        listener, transport = connected(Connections())
        subscription = consumer_of(listener)
        ids = tuple(c.MessageIdData(1, entry) for entry in range(200))
        listener.data_received(codec.encode(c.CommandRedeliverUnacknowledgedMessages(7, ids)) * 100)
        assert 0 < len(subscription.calls) <= 4 * TURN // 200 + 1
        assert not transport.reading
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(subscription.calls) == 100
        hang_up(listener)

    run(scenario)


def test_a_message_waits_for_the_long_command_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are handled in the order they came (rule 1.1.12), those that cost nothing as well."""
    done: list[str] = []

    def long(session: Session, command: c.CommandLookupTopic) -> Iterator[int]:
        for step in range(2):
            yield TURN
            done.append(f"step {step}")

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: long})

    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        listener.data_received(codec.encode(c.CommandLookupTopic("t", 1)) + sends(2))
        while len(published) < 2:
            assert not published or len(done) == 2
            await asyncio.sleep(0)
        assert (done, published) == (["step 0", "step 1"], [0, 1])
        hang_up(listener)

    run(scenario)


@pytest.mark.parametrize("steps", [False, True])
def test_nothing_is_handled_behind_a_command_that_ended_the_session(
    steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []

    def ending(session: Session, command: c.CommandLookupTopic) -> Iterator[int] | None:
        looked_up.append(command.request_id)
        session.close("enough")
        return iter((1, 1)) if steps else None

    monkeypatch.setattr(listening, "HANDLERS", {**command_table.HANDLERS, c.CommandLookupTopic: ending})

    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        subscription = consumer_of(listener)
        again = codec.encode(c.CommandLookupTopic("t", 2))
        listener.data_received(codec.encode(c.CommandLookupTopic("t", 1)) + again + ack(1) + sends(2) + again)
        for _ in range(20):
            await asyncio.sleep(0)
        assert looked_up == [1] and published == []
        assert [call for call in subscription.calls if call[0] == "ack"] == []
        hang_up(listener)

    run(scenario)


def test_a_message_behind_the_one_that_used_a_rate_up_waits() -> None:
    """It handles no further command until the limit has room (rule 14.6)."""

    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        limit = RateLimit(LimitLevel.TOPIC, "publishRate", RateAmounts(messages=1))
        producer = cast(Any, listener.session.producers[1])

        def publish(message: c.CommandSend) -> None:
            published.append(message.sequence_id)
            limit.charge(5, 0)
            listener.session.throttle((limit,))

        producer.publish = publish
        listener.data_received(sends(3))
        assert published == [0]
        hang_up(listener)

    run(scenario)


def test_what_came_with_the_one_that_used_a_rate_up_follows_in_order() -> None:
    """SENDs that are alike come in one piece; the rest of it is handled before what was sent after it (rule 14.6)."""

    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        session = listener.session
        producer = cast(Any, session.producers[1])

        def publish(message: c.CommandSend) -> None:
            published.append(message.sequence_id)
            session.halted = message.sequence_id in (1, 2)

        producer.publish = publish
        listener.data_received(sends(4) + codec.encode(c.CommandPing()) + sends(2, first=4))
        assert published == [0, 1]
        for count in (3, 6):
            session.halted = False
            listener.turn()
            assert published == list(range(count))
        assert not session.busy
        hang_up(listener)

    run(scenario)


def test_nothing_follows_the_message_that_ended_the_connection() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        session = listener.session
        producer = cast(Any, session.producers[1])

        def publish(message: c.CommandSend) -> None:
            published.append(message.sequence_id)
            if message.sequence_id == 1:
                session.close("enough")

        producer.publish = publish
        listener.data_received(sends(4))
        listener.turn()
        assert published == [0, 1]
        hang_up(listener)

    run(scenario)


def test_an_unknown_id_in_an_acknowledgement_leaves_the_others_as_they_are() -> None:
    async def scenario() -> None:
        listener, _ = connected(Connections())
        subscription = consumer_of(listener)
        held = cast(Any, listener.session.consumers[7])
        held.topic.log.exact_ordinal = lambda position: None if position.entry == 2 else position.entry
        listener.data_received(ack(1, 2, 5, request_id=9))
        assert subscription.calls == [("ack", [1, 5])]
        hang_up(listener)

    run(scenario)


def test_acknowledgements_come_before_a_message_behind_them() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        subscription = consumer_of(listener)
        seen: list[int] = []
        cast(Any, listener.session.producers[1]).publish = lambda message: seen.append(len(subscription.calls))
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
        assert subscription.calls == [("ack", [1]), ("ack", [2, 3]), ("ack", [4])]
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
        assert sum(len(ordinals) for _, ordinals in subscription.calls) == count
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
        assert subscription.calls == [("redeliver", [3, 3]), ("redeliver", None)]
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


@pytest.mark.parametrize(
    "behind", [c.CommandSend(1, 1, 1, None, False, None, False, None, b""), c.CommandAck(1, c.AckType.Individual, ())]
)
def test_what_comes_behind_a_ping_before_connect_closes_the_connection(behind: c.Command) -> None:
    """Nothing but PING may come before CONNECT (rule 1.2.1), the commands with a short way included."""

    async def scenario() -> None:
        listener = Listener(fake_service(), Connections())
        transport = FakeTransport(listener)
        listener.connection_made(transport)
        listener.data_received(codec.encode(c.CommandPing()) + codec.encode(behind))
        assert pongs(transport) == 1
        assert transport.closing
        hang_up(listener)

    run(scenario)
