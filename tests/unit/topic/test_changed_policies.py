"""A policy that changes holds for whom is there already and for those who wait, and for no closed topic."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from magnetar.broker.throttling.rate_limit import RateAmounts, RateLimit
from magnetar.broker.throttling.shared_limits import BrokerRates
from magnetar.broker.topic.publish.producer import Producer, ProducerInfo
from magnetar.broker.topic.topic import Topic
from magnetar.model.errors import QuotaExceededError, QuotaExceededHoldError, ServiceNotReadyError
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import BacklogQuota, DelayedDelivery, QuotaPolicy, TopicPolicies
from magnetar.protocol.commands import CommandSend, ProducerAccessMode
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.loaded_topic import LoadedTopic
from tests.support.topic_bench import OrdinalConnection, simulated

EXCEPTION, HOLD = QuotaPolicy.EXCEPTION, QuotaPolicy.HOLD
OFF = TopicPolicies(delayed_delivery=DelayedDelivery(active=False))
ON = TopicPolicies()


class Connected:
    """A connection that notes by which limits it is held."""

    def __init__(self) -> None:
        self.held: list[tuple[RateLimit, ...]] = []
        self.session = self
        self.heard: list[str] = []

    def throttle(self, limits: tuple[RateLimit, ...]) -> None:
        self.held.append(limits)

    def receipts(self, *_: object) -> None:
        self.heard.append("receipts")

    def dropped(self, count: int) -> None:
        self.heard.append(f"{count} dropped")

    def close(self) -> None:
        self.heard.append("closed")


def producer_on(topic: Topic, name: str, mode: ProducerAccessMode, connection: object = None) -> Producer:
    info = ProducerInfo(0, name, True, 0, mode, False, "a:1", "", "", {}, False)
    return Producer(info, topic.log, cast("Any", connection or Connected()))


def send(producer: Producer, number: int = 0, **metadata: Any) -> None:
    entry = build_entry(EntryMetadata(producer.info.name, number, 1, **metadata), b"m")
    producer.publish(CommandSend(0, number, 1, None, False, None, False, None, entry))


@pytest.mark.parametrize("who", ["is there", "waits", "comes later"])
@pytest.mark.parametrize(("before", "now", "delayed"), [(OFF, ON, 1), (ON, OFF, 0)])
def test_delays_are_honoured_from_now_on_or_no_more(
    who: str, before: TopicPolicies, now: TopicPolicies, delayed: int
) -> None:
    """Also for who waits in the queue of a topic while they change (rules 3.2.4, 7.1)."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.set_policies(before)
        topic.log.on_durable = topic.results.durable
        first = producer_on(topic, "first", ProducerAccessMode.Exclusive)
        topic.add_producer(first, None, lambda error: None)
        other = producer_on(topic, "other", ProducerAccessMode.WaitForExclusive)
        if who == "waits":
            assert not topic.add_producer(other, None, lambda error: None)
        topic.set_policies(now)
        if who != "is there":
            topic.producers.remove(first)
            await place.durable()
        if who == "comes later":
            topic.add_producer(other, None, lambda error: None)
            await place.durable()
        sender = first if who == "is there" else other
        assert topic.producers.holder(sender.info.name) is sender
        send(sender, deliver_at_time=place.clock.now_ms() + 3_600_000)
        await place.durable()
        assert len(topic.delays.index or ()) == delayed

    simulated(main)


@pytest.mark.parametrize("loaded_with", [False, True])
def test_deduplication_holds_from_loading_on_and_from_its_change_on(loaded_with: bool) -> None:
    """What a producer's name has stored already is not stored again (rule 3.4.1)."""

    async def main() -> None:
        wanted = TopicPolicies(deduplication_enabled=True)
        place = LoadedTopic(wanted if loaded_with else None)
        topic = place.topic
        topic.set_policies(wanted)
        topic.log.on_durable = topic.results.durable
        await place.durable()
        producer = producer_on(topic, "p", ProducerAccessMode.Shared)
        topic.add_producer(producer, None, lambda error: None)
        for number in (1, 2, 1, 2, 3):
            send(producer, number)
            await place.durable()
        assert topic.log.end == 3

    simulated(main)


def test_a_rate_of_the_broker_holds_for_who_publishes_already() -> None:
    """brokerPublisherThrottlingMaxMessageRate is changed while brokers run (rule 14.6)."""

    async def main() -> None:
        topic = LoadedTopic().topic
        topic.log.on_durable = topic.results.durable
        connection = Connected()
        producer = producer_on(topic, "p", ProducerAccessMode.Shared, connection)
        topic.add_producer(producer, None, lambda error: None)
        send(producer, 0)
        assert not connection.held
        topic._shared.set_rates(BrokerRates(publish=RateAmounts(messages=1)), topic.shared_limits_changed)
        for number in (1, 2):
            send(producer, number)
        ((limit,),) = set(connection.held)
        assert limit.amounts.messages == 1
        topic._shared.set_rates(BrokerRates(), topic.shared_limits_changed)
        connection.held.clear()
        for number in (3, 4, 5):
            send(producer, number)
        assert not connection.held

    simulated(main)


def test_a_limit_of_messages_that_are_out_holds_for_consumers_that_are_there() -> None:
    """maxUnackedMessagesPerConsumer (rule 5.9.10): one twice as high lets a consumer go on that stood still."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.set_policies(TopicPolicies(max_unacked_per_consumer=3))
        for number in range(10):
            place.append("k", str(number))
        await place.durable()
        topic.create_subscription("s", 0)
        subscription, connection = topic.subscriptions["s"], OrdinalConnection()
        consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Shared)
        subscription.flow(consumer, 1000)
        await asyncio.sleep(1)
        assert len(connection.ordinals) == 3
        topic.set_policies(TopicPolicies(max_unacked_per_consumer=8))
        await asyncio.sleep(1)
        assert len(connection.ordinals) == 8

    simulated(main)


def test_a_closed_topic_takes_no_policies() -> None:
    """A change may come to it between its end and its next life: its log is that one's, or deleted."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.transacting()
        topic.close()
        states, cursors = set(topic.log.feature_states), set(topic.log.cursors)
        topic.set_policies(TopicPolicies(deduplication_enabled=True, compaction_threshold=1))
        await place.durable()
        assert topic.checks.deduplication is None
        assert (set(topic.log.feature_states), set(topic.log.cursors)) == (states, cursors)
        assert COMPACTION_SUBSCRIPTION not in topic.log.cursors

    simulated(main)


def test_a_topic_that_closes_closes_its_producers_and_answers_nothing_more() -> None:
    """What is in flight has no receipt, and holds up its connection no longer: clients send it again."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.log.on_durable = topic.results.durable
        connection = Connected()
        producer = producer_on(topic, "p", ProducerAccessMode.Shared, connection)
        topic.add_producer(producer, None, lambda error: None)
        await place.durable()
        send(producer)
        topic.close()
        assert connection.heard == ["closed"]
        await place.durable()
        assert connection.heard == ["closed", "1 dropped"]

    simulated(main)


def test_a_closed_topic_admits_nobody() -> None:
    """Clients are told to come again, and find the topic where it is loaded by then."""

    async def main() -> None:
        topic = LoadedTopic().topic
        topic.close()
        with pytest.raises(ServiceNotReadyError):
            topic.add_producer(producer_on(topic, "p", ProducerAccessMode.Shared), None, lambda error: None)
        with pytest.raises(ServiceNotReadyError):
            topic.create_subscription("s", 0)
        assert not topic.log.cursors

    simulated(main)


@pytest.mark.parametrize("threshold", [0, 1])
def test_what_is_to_be_compacted_is_kept_until_it_is(threshold: int) -> None:
    """From the moment that a policy wants compaction, before any compaction has run."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.set_policies(TopicPolicies(compaction_threshold=threshold))
        for number in range(35):
            place.append("k", str(number))
            await place.durable()
        assert bool(topic.trim()) is not bool(threshold)

    simulated(main)


@pytest.mark.parametrize(("policy", "error"), [(HOLD, QuotaExceededHoldError), (EXCEPTION, QuotaExceededError)])
def test_no_producer_comes_to_a_topic_whose_backlog_is_full(policy: QuotaPolicy, error: type[Exception]) -> None:
    """By the policy of now (rule 3.1.8)."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.create_subscription("s", 0)
        place.append("k", "v" * 100)
        await place.durable()
        topic.set_policies(TopicPolicies(size_quota=BacklogQuota(10, policy)))
        with pytest.raises(error):
            topic.add_producer(producer_on(topic, "p", ProducerAccessMode.Shared), None, lambda error: None)
        topic.set_policies(TopicPolicies())
        topic.add_producer(producer_on(topic, "p", ProducerAccessMode.Shared), None, lambda error: None)

    simulated(main)


def test_an_empty_topic_has_no_last_position() -> None:
    """Neither before its first message nor after all of them were let go (rule 5.9.12)."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        assert topic.last_position() == EARLIEST
        for number in range(10):
            place.append("k", str(number))
        await place.durable()
        ledger = topic.log.table.ledgers[-1].id
        assert topic.last_position() == Position(ledger, 9)
        place.topic.log.open_ledger()
        assert topic.trim() == 1
        assert topic.last_position() == EARLIEST

    simulated(main)


def test_the_properties_of_users_and_those_of_the_topic_stand_beside_each_other() -> None:
    """They are replaced as a whole, are durable, and touch nothing that the broker keeps there itself."""

    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        own = {"magnetar.mark": "7", "pulsar.topic.mark": "8"}
        topic.log.properties = {**topic.log.properties, **own}
        for wanted in ({"a": "1", "b": "2"}, {"c": "3"}, {}):
            topic.set_properties(dict(wanted))
            await place.durable()
            place.kill()
            topic = place.topic
            assert topic.properties() == wanted
            assert {name: topic.log.properties[name] for name in own} == own

    simulated(main)


def test_who_asks_for_a_topic_that_is_durable_is_answered_at_once() -> None:
    async def main() -> None:
        place = LoadedTopic()
        answers: list[object] = []
        place.topic.when_durable(answers.append)
        assert answers == []
        await place.durable()
        assert answers == [None]
        place.topic.when_durable(answers.append)
        assert answers == [None, None]

    simulated(main)
