"""A producer's receipts and refusals come in the order of its messages, however the disk takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.producer_outbox import ProducerOutbox
from magnetar.model.errors import PersistenceError, ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawProducer, make_entry
from tests.sim.world import T, World
from tests.support.connections import hang_up, publisher, sends
from tests.support.conversations import connected, talk

KINDS: Any = (c.CommandSendReceipt, c.CommandSendError)


def say(client: RawClient, producer: RawProducer, pattern: str, other: RawProducer | None = None) -> None:
    """Send messages of this pattern: the ``b`` are spoilt and refused, the ``o`` another producer's."""
    for one in pattern:
        if one == "b":
            number = producer.next_sequence_id
            producer.next_sequence_id += 1
            entry = make_entry(b"x", producer=producer.name, sequence_id=number)[:-1] + b"z"
            client.say(c.CommandSend(producer.producer_id, number, 1, None, False, None, False, None, entry))
        else:
            sender = other if one == "o" and other is not None else producer
            sender.send(b"x")


@pytest.mark.parametrize("first", ["g", "gb", "gbb", "gbgb", "bgb", "gbbgbb", "ggbggb", "gbog", "gobogbo"])
@pytest.mark.parametrize("then", ["", "b", "gb", "bgbb", "gbbg", "obg"])
def test_answers_come_in_the_order_of_the_messages(first: str, then: str) -> None:
    """Clients count on it, and the ids of receipts are the places of their messages (rule 3.3.2)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer, other = await client.producer(T, "p"), await client.producer(T, "q")
        world.machine.hold_writes()
        say(client, producer, first, other)
        await client.partitions(T)
        assert not client.heard(c.CommandSendReceipt)
        say(client, producer, then, other)  # in the group of the journal after it
        await client.partitions(T)
        sent = first + then
        stored = [one for one in sent if one != "b"]
        answers = asyncio.gather(*[client.hear(*KINDS) for _ in sent])
        await asyncio.sleep(0)
        world.machine.release_writes()
        for whose, kinds in ((producer, "gb"), (other, "o")):
            found = [one for one in await answers if one.producer_id == whose.producer_id]
            assert [one.sequence_id for one in found] == list(range(len(found)))
            wanted = [one for one in sent if one in kinds]
            assert [KINDS[one == "b"] for one in wanted] == [type(one) for one in found]
            places = [entry for entry, one in enumerate(stored) if one in kinds]
            receipts = [one for one in found if isinstance(one, c.CommandSendReceipt)]
            assert [one.message_id and one.message_id.entry for one in receipts] == places

    talk(simulation)


def test_a_refusal_is_sent_although_the_next_write_fails() -> None:
    """What was sent before it is on disk; the write that fails is another topic's."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer, other = await client.producer(T, "p"), await client.producer(T + "-other", "q")
        world.machine.hold_writes()
        say(client, producer, "g")
        await client.partitions(T)
        say(client, producer, "b")
        say(client, other, "g")
        await client.partitions(T)
        world.machine.files.fail("sync", skip=1)
        answers = asyncio.gather(*[client.hear(*KINDS) for _ in range(3)])
        await asyncio.sleep(0)
        world.machine.release_writes()
        found = [(one.producer_id, one.sequence_id, type(one)) for one in await answers]
        assert found[:1] == [(producer.producer_id, 0, KINDS[0])]
        assert set(found[1:]) == {(producer.producer_id, 1, KINDS[1]), (other.producer_id, 0, KINDS[1])}

    talk(simulation)


class Log:
    """Has nothing that waits for the disk any more: a barrier is over at once."""

    next, end = 1, 1

    def __init__(self) -> None:
        self.failed: Callable[[PersistenceError], None]

    def barrier(self, done: Callable[[], None], failed: Callable[[PersistenceError], None]) -> None:
        if hasattr(self, "failed"):
            done()
        self.failed = failed


def test_a_refusal_behind_a_message_that_the_disk_refused_is_not_sent() -> None:
    """All of a write that failed fail in one turn; the producer is closed then, and its client sends again."""

    async def scenario() -> None:
        listener, transport, _, _ = publisher(Connections())
        log = Log()
        outbox = ProducerOutbox(listener.session, 1, cast(Any, log))
        listener.session.pending_publishes = 2
        for number in (1, 2):
            log.next = number
            outbox.refuse(c.CommandSendError(1, number, ServerError.ChecksumError, "spoilt"))
        log.failed(PersistenceError("the disk refused"))
        outbox.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not [one for one in transport.heard() if isinstance(one, c.CommandSendError)]
        hang_up(listener)

    asyncio.run(scenario())


@pytest.mark.parametrize(("dropped", "place"), [(False, 0), (True, -1)])
def test_receipts_of_what_is_not_stored_carry_no_place(dropped: bool, place: int) -> None:
    """0:0, and -1:-1 for what a full connection dropped (rule 13.3); each kind also behind the other."""

    async def scenario() -> None:
        listener, transport, outbox, _ = publisher(Connections())
        results = cast(Any, [SimpleNamespace(sequence_id=7, highest_sequence_id=None)])
        outbox.unstored(results, dropped=not dropped)
        outbox.unstored(results, dropped=dropped)
        await asyncio.sleep(0)
        receipts = [one for one in transport.heard() if isinstance(one, c.CommandSendReceipt)]
        ids = [(one.message_id.ledger, one.message_id.entry) for one in receipts if one.message_id is not None]
        assert ids == [(-1 - place,) * 2, (place,) * 2]
        hang_up(listener)

    asyncio.run(scenario())


def test_what_the_disk_refused_says_why() -> None:
    """SEND_ERROR PersistenceError for each message, with the disk's words (rule 3.3.5)."""

    async def scenario() -> None:
        listener, transport, outbox, _ = publisher(Connections())
        results = cast(Any, [SimpleNamespace(sequence_id=one) for one in (4, 5)])
        outbox.failed(results, PersistenceError("no space left on device"))
        await asyncio.sleep(0)
        found = [
            (one.producer_id, one.sequence_id, one.error, one.message)
            for one in transport.heard()
            if isinstance(one, c.CommandSendError)
        ]
        assert found == [(1, one, ServerError.PersistenceError, "no space left on device") for one in (4, 5)]
        hang_up(listener)

    asyncio.run(scenario())


def test_a_message_of_who_was_fenced_ends_its_connection() -> None:
    """And is not stored: another has its place (rule 3.2.3)."""

    async def scenario() -> None:
        listener, transport, outbox, published = publisher(Connections())
        outbox.fence()
        listener.data_received(sends(1))
        assert (published, transport.closing) == ([], True)
        hang_up(listener)

    asyncio.run(scenario())
