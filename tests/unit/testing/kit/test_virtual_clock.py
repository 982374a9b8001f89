"""Time that a test moves: whatever is due has happened when `advance` returns, at the broker and in our own clients."""

from __future__ import annotations

import asyncio
import datetime
import math
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import magnetar
from magnetar import aio
from magnetar.model.errors import InvalidValueError
from magnetar.testing import BrokerClosedError, ForeignClockWarning, PulsarBroker, WouldBlockError
from magnetar.testing.kit.virtual_clock import late_seconds

Scenario = Callable[[PulsarBroker, aio.Client], Coroutine[Any, Any, None]]


def run(scenario: Scenario, **settings: object) -> None:
    """Run it with a broker and a client that shares its time."""

    async def main() -> None:
        async with PulsarBroker(seed=7, settings=settings) as broker, broker.aio_client() as client:
            await scenario(broker, client)

    asyncio.run(main())


def test_a_delayed_message_is_there_at_its_time_and_not_before() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t")
        consumer = await client.subscribe("t", "s", aio.ConsumerType.Shared)
        await producer.send(b"later", deliver_after=datetime.timedelta(hours=2))
        await broker.clock.advance_async(hours=1, minutes=59)
        assert consumer.receive_nowait() is None
        await broker.clock.advance_async(minutes=1)
        message = consumer.receive_nowait()
        assert message is not None and message.data() == b"later"

    run(scenario)


def test_messages_expire_and_what_nobody_needs_is_trimmed() -> None:
    settings = {
        "ttlDurationDefaultInSeconds": 3600, "defaultRetentionTimeInMinutes": 180, "defaultRetentionSizeInMB": -1,
    }  # fmt: skip

    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t")
        await (await client.subscribe("t", "s")).close()
        topic = broker.topic("t")
        await producer.send(b"old")
        await broker.clock.advance_async(minutes=30)
        assert topic.backlog("s") == 1
        await broker.clock.advance_async(hours=1)
        assert topic.backlog("s") == 0 and len(topic.messages()) == 1
        await broker.clock.advance_async(hours=24)
        assert topic.messages() == []

    run(scenario, **settings)


def test_a_negative_acknowledgement_comes_back_after_its_delay() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        producer = await client.create_producer("t")
        consumer = await client.subscribe("t", "s", aio.ConsumerType.Shared, negative_ack_redelivery_delay_ms=60_000)
        await producer.send(b"again")
        await consumer.negative_acknowledge(await consumer.receive())
        await broker.clock.advance_async(55)
        assert consumer.receive_nowait() is None
        await broker.clock.advance_async(10)
        message = consumer.receive_nowait()
        assert message is not None and message.redelivery_count() == 1

    run(scenario)


def test_an_inactive_topic_is_deleted_and_a_client_survives_a_week() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        await (await client.create_producer("gone")).close()
        consumer = await client.subscribe("kept", "s", consumer_name="me")
        assert len(broker.topics()) == 2
        await broker.clock.advance_async(hours=3)
        assert broker.topics() == ["persistent://public/default/kept"]
        await (await client.create_producer("kept")).send(b"x")
        assert (await consumer.receive()).data() == b"x"
        assert broker.topic("kept").subscriptions()["s"].consumers == ("me",)

    run(scenario, brokerDeleteInactiveTopicsMode="delete_when_no_subscriptions")


def test_time_moves_without_an_event_loop_and_from_several_threads_and_never_back() -> None:
    with PulsarBroker() as broker:
        clock = broker.clock
        before = clock.now_ms()
        clock.advance(datetime.timedelta(days=1))
        clock.advance(90)
        assert clock.skipped_seconds == pytest.approx(86_490, abs=0.1)
        assert 86_490_000 <= clock.now_ms() - before < 86_550_000
        assert clock.now().timestamp() * 1000 == pytest.approx(clock.now_ms(), abs=60_000)
        clock.settle()
        absurd: list[Any] = [-1, math.nan, math.inf, 1e300, "1 h"]
        for each in absurd:
            with pytest.raises(InvalidValueError):
                clock.advance(each)
        assert clock.skipped_seconds == pytest.approx(86_490, abs=0.1)

        async def two() -> None:
            await asyncio.gather(*(asyncio.to_thread(clock.advance, 30) for _ in range(2)))
            with pytest.raises(WouldBlockError, match="advance_async"):
                clock.advance(1)

        asyncio.run(two())
        assert clock.skipped_seconds == pytest.approx(86_550, abs=0.2)
    with pytest.raises(BrokerClosedError, match="with"):
        clock.advance(1)


def test_a_forgotten_await_moves_nothing_and_python_says_so() -> None:
    with PulsarBroker() as broker:
        with pytest.warns(RuntimeWarning, match="never awaited"):
            broker.clock.advance_async(hours=1)  # type: ignore[unused-coroutine]
        assert broker.clock.skipped_seconds == 0


def test_a_loop_whose_time_cannot_be_moved_is_refused() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main(broker: PulsarBroker) -> None:
        with pytest.raises(InvalidValueError, match="service_url"):
            broker.aio_client()
        # its timers stay real, and it works
        async with aio.Client(broker.service_url) as client:
            await (await client.create_producer("t")).send(b"x")
            with pytest.warns(ForeignClockWarning, match="does not move"):
                await broker.clock.advance_async(hours=1)
        await broker.clock.advance_async(hours=1)

    with PulsarBroker() as broker, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(broker))


def test_a_client_with_the_machines_clock_is_named_where_time_is_moved() -> None:
    """A program makes its client from the URL, and its negative acknowledgements would silently wait a real minute."""
    with PulsarBroker() as broker, broker.client() as ours, magnetar.Client(broker.service_url) as stranger:
        broker.clock.advance(0)
        broker.clock.settle()
        with pytest.warns(ForeignClockWarning, match=r"^1 open client.*broker\.client\(\)") as warned:
            broker.clock.advance(minutes=1)
        assert [one.filename for one in warned] == [__file__]
        assert broker.clock.skipped_seconds >= 60
        stranger.close()
        broker.clock.advance(minutes=1)
        assert ours.get_service_info().service_url == broker.service_url


def test_other_timers_of_the_loop_fire_in_their_order() -> None:
    async def scenario(broker: PulsarBroker, client: aio.Client) -> None:
        fired: list[int] = []

        async def wait(seconds: int) -> None:
            await asyncio.sleep(seconds)
            fired.append(seconds)

        tasks = [asyncio.get_running_loop().create_task(wait(seconds)) for seconds in (300, 100, 200, 4000)]
        await broker.clock.advance_async(hours=1)
        assert fired == [100, 200, 300]
        tasks[-1].cancel()

    run(scenario)


def test_how_late_a_timer_may_be() -> None:
    assert late_seconds(60) == 0.12
    assert late_seconds(86_400) == 172.8
