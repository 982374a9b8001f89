"""What a producer does while its topic's backlog is over the quota, in virtual time against a whole broker."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from magnetar import exceptions
from magnetar.client.errors import ClientTimeoutError
from magnetar.config.settings import Settings
from magnetar.protocol.commands import SubType
from tests.sim.world import T, World, run_seed
from tests.support.delivery_stage import Stage, client_in


def _over_quota(
    story: Any, policy: Literal["producer_request_hold", "producer_exception"], send_timeout_millis: int
) -> None:
    """Run ``story`` with a producer whose topic has a message that is too old, and the consumer that has it."""

    async def run(world: World) -> None:
        await world.boot()
        async with client_in(world) as client:
            stage = Stage(world, client)
            consumer = await stage.subscribe(consumer_type=SubType.Exclusive)
            producer = await client.create_producer(T, send_timeout_millis=send_timeout_millis)
            await producer.send(b"old")
            await asyncio.sleep(100)
            assert not producer.is_connected()
            await story(stage, producer)
            await consumer.acknowledge(await consumer.receive())
            await asyncio.sleep(100)
            await producer.send(b"new")
            assert (await consumer.receive()).data() == b"new"

    settings = Settings(
        backlogQuotaDefaultLimitSecond=30, backlogQuotaCheckIntervalInSeconds=10,
        backlogQuotaDefaultRetentionPolicy=policy,
    )  # fmt: skip
    run_seed(run, 0, settings=settings)


def test_messages_wait_for_room_up_to_their_time_out() -> None:
    """The client goes on trying to open the producer (rule 4.6.7)."""

    async def story(stage: Stage, producer: Any) -> None:
        began = stage.now
        with pytest.raises(ClientTimeoutError):
            await producer.send(b"waits in vain")
        assert 30 <= stage.now - began < 40
        with pytest.raises(exceptions.ProducerBlockedQuotaExceededError):
            await stage.client.create_producer(T)

    _over_quota(story, "producer_request_hold", 30_000)


def test_messages_fail_where_the_policy_is_an_exception() -> None:
    """At the next attempt to open the producer, which goes on until there is room (rule 4.6.7)."""

    async def story(stage: Stage, producer: Any) -> None:
        with pytest.raises(exceptions.ProducerBlockedQuotaExceededException):
            await producer.send(b"refused")
        with pytest.raises(exceptions.ProducerBlockedQuotaExceededException):
            await stage.client.create_producer(T)

    _over_quota(story, "producer_exception", 0)
