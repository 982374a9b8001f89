"""A producer's receipts and refusals come in the order of its messages, however the disk takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from magnetar.broker.connection.listener import Connections
from magnetar.broker.connection.producer_outbox import ProducerOutbox
from magnetar.model.errors import PersistenceError, ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawProducer, make_entry
from tests.sim.world import T, World
from tests.support.connections import hang_up, publisher
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
