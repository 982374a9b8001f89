"""A transaction's end while one of its topics cannot take it: no topic gets it, and no client hears that it has."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from magnetar.broker.transaction_coordinator import ASKED_AGAIN_MAX
from magnetar.config.settings import Settings
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import World
from tests.support.conversations import connected, talk

SETTINGS = Settings(transactionCoordinatorEnabled=True)
TOPICS = ("persistent://public/default/one", "persistent://public/default/two")


async def sent(client: RawClient, ttl_ms: int = 60_000) -> RawTransaction:
    """A transaction with one message in each topic."""
    txn = await RawTransaction.begin(client, ttl_ms)
    for topic in TOPICS:
        await txn.publish(await client.producer(topic), b"m")
    return txn


def open_at(world: World) -> list[bool]:
    """Whether each topic has an open transaction."""
    topics = [world.machine.broker.service.topics[name] for name in TOPICS]
    return [topic.transactions is not None and bool(topic.transactions.buffer.open) for topic in topics]


def no_part(world: World) -> Callable[[], None]:
    """The second topic takes no part in transactions until the function that is returned is called."""
    topic = world.machine.broker.service.topics[TOPICS[1]]
    real = topic.transacting

    def fails() -> Any:
        raise RuntimeError("not now")

    def mended() -> None:
        topic.transacting = real  # type: ignore[method-assign]

    topic.transacting = fails  # type: ignore[method-assign]
    return mended


def not_found(world: World) -> Callable[[], None]:
    """The second topic cannot be loaded until then."""
    coordinator = world.machine.broker.service.coordinator
    real = coordinator._find

    def fails(name: TopicName) -> Any:
        if name.fqn == TOPICS[1]:
            raise RuntimeError("a state that cannot be read")
        return real(name)

    def mended() -> None:
        coordinator._find = real

    coordinator._find = fails
    return mended


@pytest.mark.parametrize("trouble", [no_part, not_found])
@pytest.mark.parametrize("action", [c.TxnAction.COMMIT, c.TxnAction.ABORT])
def test_an_end_that_a_topic_cannot_take_is_answered_when_all_have_it(
    trouble: Callable[[World], Callable[[], None]], action: c.TxnAction
) -> None:
    """Also to a client that asks again meanwhile (rule 9.6); on the disk there is no half of it (decision 007)."""

    async def simulation(world: World) -> None:
        client = await connected()
        txn = await sent(client)
        mended = trouble(world)
        for _ in range(2):
            client.say(c.CommandEndTxn(client.new_id(), txn.id, action))
            await asyncio.sleep(2.5)
        assert (client.heard(c.CommandEndTxnResponse), open_at(world)) == ([], [True, True])
        mended()
        for _ in range(2):
            assert (await client.hear(c.CommandEndTxnResponse)).error is None
        assert open_at(world) == [False, False]
        activity = world.machine.broker.service.activity.transactions
        assert activity.committed + activity.aborted == 1

    talk(simulation, SETTINGS)


def test_one_that_cannot_end_in_time_keeps_no_other_from_it() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        await sent(client, 1_000)
        other = await RawTransaction.begin(client, 3_000)
        not_found(world)
        await asyncio.sleep(5)
        coordinator = world.machine.broker.service.coordinator
        assert other.id not in [one.id for one in coordinator.open]

    talk(simulation, SETTINGS)


def test_a_topic_that_cannot_be_loaded_is_tried_less_and_less_often() -> None:
    """It may be so until it is deleted; then the end is there within a minute."""

    async def simulation(world: World) -> None:
        client = await connected()
        txn = await sent(client)
        mended = not_found(world)
        coordinator = world.machine.broker.service.coordinator
        tries, fails = [], coordinator._find

        def counted(name: TopicName) -> Any:
            if name.fqn == TOPICS[1]:
                tries.append(world.loop.time())
            return fails(name)

        coordinator._find = counted
        client.say(c.CommandEndTxn(client.new_id(), txn.id, c.TxnAction.COMMIT))
        await asyncio.sleep(3600)
        pauses = [round(later - earlier) for earlier, later in itertools.pairwise(tries)]
        assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
        assert set(pauses[6:]) == {60}
        mended()
        await asyncio.sleep(60)
        assert (await client.hear(c.CommandEndTxnResponse)).error is None

    talk(simulation, SETTINGS)


def test_nothing_is_carried_by_a_coordinator_that_is_closed() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        txn = await sent(client)
        mended = not_found(world)
        client.say(c.CommandEndTxn(client.new_id(), txn.id, c.TxnAction.COMMIT))
        await asyncio.sleep(2.5)
        coordinator = world.machine.broker.service.coordinator
        coordinator.close()
        mended()
        await asyncio.sleep(100)
        assert open_at(world) == [True, True]
        assert [one.id for one in coordinator.open] == [txn.id]

    talk(simulation, SETTINGS)


def test_an_end_that_is_asked_for_again_and_again_keeps_a_few_questions_only() -> None:
    """The others' clients have given up; each would keep its connection, and as many came as a client likes to send."""

    async def simulation(world: World) -> None:
        client = await connected()
        txn = await sent(client)
        mended = not_found(world)
        for _ in range(3 * ASKED_AGAIN_MAX):
            client.say(c.CommandEndTxn(client.new_id(), txn.id, c.TxnAction.COMMIT))
        last = client.new_id() - 1
        await asyncio.sleep(0.5)
        assert [len(asked) for asked in world.machine.broker.service.coordinator._carried_again.values()] == [
            ASKED_AGAIN_MAX
        ]
        mended()
        answers = [await client.hear(c.CommandEndTxnResponse) for _ in range(1 + ASKED_AGAIN_MAX)]
        assert answers[-1].request_id == last
        assert not [one for one in answers if one.error is not None]

    talk(simulation, SETTINGS)
