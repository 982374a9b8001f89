"""A client that wants the place of a silent one gets it after one unanswered PING, and not before (rules 3.1.2 and
5.3.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"


Take = Callable[[RawClient], Awaitable[None]]


async def take_consumer(client: RawClient) -> None:
    await client.subscribe(T, "s")


async def take_name(client: RawClient) -> None:
    await client.producer(T, "p")


PLACES = [(take_consumer, "ConsumerBusy"), (take_name, "ProducerBusy")]


@pytest.mark.parametrize(("take", "busy"), PLACES)
def test_a_frozen_holder_is_evicted(take: Take, busy: str) -> None:
    async def test(wires: Wires) -> None:
        dead, other = await wires.open(answer_pings=False), await wires.open()
        await take(dead)
        asked = wires.now
        await take(other)
        assert 5.0 <= wires.now - asked < 5.5
        assert dead.pings == 1
        await dead.lost

    on_broker(test)


@pytest.mark.parametrize(("take", "busy"), PLACES)
def test_a_living_holder_stays(take: Take, busy: str) -> None:
    async def test(wires: Wires) -> None:
        holder, other = await wires.open(), await wires.open()
        await take(holder)
        asked = wires.now
        with pytest.raises(RawClientError, match=busy):
            await take(other)
        assert wires.now - asked < 1.0
        assert (holder.pings, holder.lost.done()) == (1, False)

    on_broker(test)


@pytest.mark.parametrize(("take", "busy"), PLACES)
def test_any_command_is_a_sign_of_life(take: Take, busy: str) -> None:
    """Any command that is received counts as a sign of life, not only PONG (rule 12.10)."""

    async def test(wires: Wires) -> None:
        holder, other = await wires.open(answer_pings=False), await wires.open()
        await take(holder)
        holder.on_command = lambda command: (
            holder.say(c.CommandLookupTopic(T, 99)) if isinstance(command, c.CommandPing) else None
        )
        with pytest.raises(RawClientError, match=busy):
            await take(other)
        assert not holder.lost.done()

    on_broker(test)


def test_several_who_wait_for_one_frozen_holder() -> None:
    """One PING serves them all; one gets the place, the others are refused."""

    async def test(wires: Wires) -> None:
        dead = await wires.open(answer_pings=False)
        await take_consumer(dead)
        others = [await wires.open() for _ in range(3)]
        for other in others:
            other.say(c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 1))
        answers = [type(await other.hear(c.CommandSuccess, c.CommandError)).__name__ for other in others]
        assert sorted(answers) == ["CommandError", "CommandError", "CommandSuccess"]
        assert dead.pings == 1

    on_broker(test)
