"""The broker's own limits, where no policy says another: what somebody who has set them sees."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from magnetar.config.configuration import load
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.support.real_broker import RealBroker, run_on_broker
from tests.wire.bench import Wires, on_broker
from tests.wire.rate_loads import SPAN, Flood, T, dispatched, fill


@pytest.mark.parametrize(
    ("setting", "second"),
    [("maxConsumersPerTopic", "b"), ("maxConsumersPerSubscription", "a"), ("maxSubscriptionsPerTopic", "b")],
)
def test_one_consumer_too_many_is_refused(setting: str, second: str) -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.subscribe(T, "a", c.SubType.Shared)
        with pytest.raises(RawClientError):
            await client.subscribe(T, second, c.SubType.Shared)

    on_broker(test, **{setting: 1})


@pytest.mark.parametrize("setting", ["maxUnackedMessagesPerConsumer", "maxUnackedMessagesPerSubscription"])
def test_what_is_not_acknowledged_holds_back_what_follows(setting: str) -> None:
    async def test(wires: Wires) -> None:
        await fill(wires, 10)
        client = await wires.open()
        consumer = await client.subscribe(T, "s", c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
        consumer.flow(10)
        await asyncio.sleep(1)
        assert len(client.heard(c.CommandMessage)) == 3

    on_broker(test, **{setting: 3})


@pytest.mark.parametrize("sub_type", [c.SubType.Shared, c.SubType.Key_Shared])
def test_who_has_many_messages_waits_while_the_broker_has_too_many(sub_type: c.SubType) -> None:
    """maxUnackedMessagesPerBroker: until each has half its share, or the broker half its limit. Who has few goes on."""

    async def test(wires: Wires) -> None:
        await fill(wires, 200)
        client, other = await wires.open(), await wires.open()
        many = await client.subscribe(T, "many", sub_type, initial_position=c.InitialPosition.Earliest)
        few = await other.subscribe(T, "few", sub_type, initial_position=c.InitialPosition.Earliest)
        subscriptions = wires.world.machine.broker.service.topics[T].subscriptions

        async def got(permits_of_many: int, permits_of_few: int) -> tuple[int, int]:
            for consumer, permits in ((many, permits_of_many), (few, permits_of_few)):
                if permits:
                    consumer.flow(permits)
            await asyncio.sleep(5)
            return len(client.heard(c.CommandMessage)), len(other.heard(c.CommandMessage))

        def ids(heard: RawClient, first: int, stop: int) -> list[c.MessageIdData]:
            return [one.message_id for one in heard.heard(c.CommandMessage)[first:stop]]

        assert await got(90, 15) == (90, 15)
        assert await got(100, 100) == (90, 20)
        assert all(subscriptions[name].stats().blocked_on_unacked for name in ("many", "few"))
        many.ack_unconfirmed(*ids(client, 0, 40))
        few.ack_unconfirmed(*ids(other, 0, 10))
        assert await got(0, 0) == (90, 30)
        many.ack_unconfirmed(*ids(client, 40, 69))
        assert await got(0, 0) == (190, 115)

    on_broker(test, maxUnackedMessagesPerBroker=100, maxUnackedMessagesPerSubscriptionOnBrokerBlocked=0.2)


async def delayed(wires: Wires, seconds: float) -> list[c.CommandMessage]:
    """Send a message that is to come an hour later, and return what has come after so long."""
    client = await wires.open()
    consumer = await client.subscribe(T, "s", c.SubType.Shared)
    consumer.flow(10)
    producer = await client.producer(T)
    due = wires.world.machine.clock.now_ms() + 3_600_000
    producer.send(b"", entry=build_entry(EntryMetadata(producer.name, 0, 1, deliver_at_time=due), b"x"))
    await producer.receipt()
    await asyncio.sleep(seconds)
    return client.heard(c.CommandMessage)


def test_without_delayed_delivery_messages_come_at_once() -> None:
    async def test(wires: Wires) -> None:
        assert len(await delayed(wires, 10)) == 1

    on_broker(test, delayedDeliveryEnabled=False)


def test_a_delay_beyond_the_longest_is_refused() -> None:
    async def test(wires: Wires) -> None:
        with pytest.raises(RawClientError):
            await delayed(wires, 10)

    on_broker(test, delayedDeliveryMaxDelayInMillis=60_000)


@pytest.mark.parametrize(
    "setting", ["dispatchThrottlingRatePerTopicInByte", "dispatchThrottlingRatePerSubscriptionInByte"]
)
def test_dispatching_by_bytes(setting: str) -> None:
    async def test(wires: Wires) -> None:
        await fill(wires, 10_000)
        (drain,) = await dispatched(wires, (T, "s"))
        assert drain.bytes == pytest.approx(SPAN * 5_000, rel=0.05)

    on_broker(test, **{setting: 5_000})


def test_publishing_by_bytes() -> None:
    async def test(wires: Wires) -> None:
        flood = await Flood(size=100).start(await wires.open())
        await asyncio.sleep(SPAN)
        assert flood.bytes == pytest.approx(SPAN * 20_000, rel=0.02)

    on_broker(test, maxPublishRatePerTopicInBytes=20_000)


@pytest.mark.parametrize("settings", [{}, {"subscribeRatePeriodPerConsumerInSecond": 5}], ids=["default", "5 s"])
def test_subscribing_again_and_again(settings: dict[str, Any]) -> None:
    """Twice in each period of 30 s, or of as many as are set."""

    async def again(wires: Wires) -> int:
        client = await wires.open()
        done = 0
        for _ in range(10):
            try:
                await client.request(
                    c.CommandSubscribe(T, "s", c.SubType.Exclusive, 7, client.new_id(), consumer_name="one"),
                    c.CommandSuccess,
                )
            except RawClientError:
                pass
            else:
                done += 1
                await client.request(c.CommandCloseConsumer(7, client.new_id()), c.CommandSuccess)
            await asyncio.sleep(1)
        return done

    async def test(wires: Wires) -> None:
        assert await again(wires) == (4 if settings else 2)

    on_broker(test, subscribeThrottlingRatePerConsumer=2, **settings)


@pytest.mark.parametrize(("minutes", "several"), [(0, True), (10, False)])
def test_a_ledger_is_full_by_its_entries_once_it_is_old_enough(tmp_path: Path, minutes: int, several: bool) -> None:
    async def test(broker: RealBroker) -> None:
        producer = await (await broker.client()).producer(T)
        ledgers = {(await producer.publish(b"x")).ledger for _ in range(10)}
        assert (len(ledgers) > 1) is several

    run_on_broker(tmp_path, test, managedLedgerMaxEntriesPerLedger=3, managedLedgerMinLedgerRolloverTimeMinutes=minutes)


def test_topics_are_made_with_partitions() -> None:
    async def test(wires: Wires) -> None:
        assert (await (await wires.open()).partitions(T)).partitions == 3

    on_broker(test, allowAutoTopicCreationType="partitioned", defaultNumPartitions=3)


@pytest.mark.parametrize("kind", ["partitioned", "non-partitioned"])
def test_no_topic_is_made_with_no_partition(kind: str) -> None:
    """As in Apache Pulsar, which takes 0 and creates no topic where it is to be partitioned."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        if kind == "partitioned":
            with pytest.raises(RawClientError, match="TopicNotFound"):
                await client.producer(T)
        else:
            assert (await client.partitions(T)).partitions == 0
            await client.producer(T)

    given = load(flags=["defaultNumPartitions=0", f"allowAutoTopicCreationType={kind}"]).settings
    on_broker(
        test,
        allowAutoTopicCreationType=given.allowAutoTopicCreationType,
        defaultNumPartitions=given.defaultNumPartitions,
    )


@pytest.mark.parametrize("name", ["absent", "parted-partition-7"])
def test_a_subscription_makes_no_topic_that_may_not_be_made(tmp_path: Path, name: str) -> None:
    """The words are Apache Pulsar 4.0.8's (`PersistentTopicsBase`), which answers 412 here and 404 elsewhere."""

    async def test(broker: RealBroker) -> None:
        topics = "/admin/v2/persistent/public/default"
        assert (await broker.ask("PUT", f"{topics}/parted/partitions", 2))[0] == 204
        status, answered = await broker.ask("PUT", f"{topics}/{name}/subscription/s")
        assert (status, answered["reason"]) == (412, "Topic does not exist and cannot be auto-created")
        assert (await broker.ask("GET", f"{topics}/{name}/stats"))[0] == 404

    run_on_broker(tmp_path, test, allowAutoTopicCreation=(name != "absent"))
