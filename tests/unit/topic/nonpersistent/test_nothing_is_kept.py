"""What a non-persistent topic answers where others look into their log, and when it goes (rules 13.6 to 13.11)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.nonpersistent.fan_out import FanOutGroup
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.nonpersistent.nonpersistent_topics import NonPersistentTopics
from magnetar.broker.topic.ports import SentTotals
from magnetar.model.errors import ConsumerBusyError, MagnetarError, MetadataError, ServiceNotReadyError
from magnetar.model.ids import EARLIEST, Position
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import InactiveTopics, TopicPolicies
from tests.support.subscription_fakes import FakeConnection

NAME = TopicName.parse("non-persistent://public/default/t")
OTHER = TopicName.parse("non-persistent://public/default/other")


class SetClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


class Place:
    """All non-persistent topics, with policies that a test may change."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.policies = {NAME.fqn: TopicPolicies(), OTHER.fqn: TopicPolicies()}
        self.topics = NonPersistentTopics(DispatchSettings(), self.clock, 100, lambda name: self.policies[name.fqn])
        self.news: list[tuple[str, bool]] = []
        self.topics.on_change = lambda name, there: self.news.append((name.fqn, there))

    def subscription(self, topic: NonPersistentTopic, name: str = "s") -> Any:
        return topic.subscription(name, durable=True, ordinal=lambda: 0, properties={}, done=lambda: None)


def join(subscription: Any, permits: int = 0, sub_type: SubType = SubType.Shared) -> tuple[Any, FakeConnection]:
    connection = FakeConnection()
    consumer = subscription.add_consumer(connection, name="c", consumer_id=1, sub_type=sub_type)
    if permits:
        subscription.flow(consumer, permits)
    return consumer, connection


def group(*counts: int) -> FanOutGroup:
    plain = all(count == 1 for count in counts)
    return FanOutGroup([b"12345"] * len(counts), None if plain else list(counts), sum(counts), 5 * len(counts))


def test_it_looks_like_a_log_with_nothing_in_it() -> None:
    topic = Place().topics.make(NAME)
    log = topic.log
    assert (log.first, log.end, log.next) == (0, 0, 0)
    assert log.cached(0, 10, 10) is None
    answers: list[Any] = []
    log.read(0, 10, 10, answers.append)
    assert type(answers[0]) is MagnetarError and "keeps no messages" in str(answers[0])
    assert log.position(5) == EARLIEST
    assert [log.ordinal(Position(*at)) for at in ((0, 0), (-1, -1), (7, 7))] == [0, 0, 0]
    assert [log.exact_ordinal(Position(*at)) for at in ((0, 0), (0, 1), (1, 0))] == [0, None, None]
    assert topic.last_visible() == -1
    with pytest.raises(MagnetarError, match="has no last message"):
        topic.last_position()
    topic.find_time(123, answers.append)
    assert answers[1:] == [0]
    subscription = Place().subscription(topic)
    assert topic.reading_log(compacted=True) is topic.reading_log(compacted=False) is topic.log_of(subscription) is log


@pytest.mark.parametrize("member", [True, False])
@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize("force", [False, True])
def test_who_unsubscribes_is_alone_or_disconnects_the_others(force: bool, others: int, member: bool) -> None:
    """As on a persistent topic (rule 5.9.9)."""
    place = Place()
    subscription = place.subscription(place.topics.make(NAME))
    mine, connection = join(subscription)
    rest = [join(subscription) for _ in range(others)]
    if not member:
        subscription.remove_consumer(mine)
    if force:
        subscription.check_unsubscribe(mine, force=True)
        assert [one.closed for _, one in rest] == [1] * others
        assert subscription.consumers == [mine] * member
    elif others or not member:
        with pytest.raises(MetadataError, match="Unconnected or shared consumer"):
            subscription.check_unsubscribe(mine)
        assert len(subscription.consumers) == others + member
    else:
        subscription.check_unsubscribe(mine)
    assert connection.closed == 0


def test_a_subscription_goes_with_its_last_consumer_and_its_counters_stay_with_the_topic() -> None:
    """They are since the topic was made (rule 13.8)."""
    topic = Place().topics.make(NAME)
    place = Place()
    first = place.subscription(topic)
    assert place.subscription(topic) is first, "whoever comes later joins"
    one, other = join(first, 3), join(first, 2)
    topic._deliver(group(1, 2, 1, 1), lambda: None)
    assert (topic.entries_in, topic.msg_in, topic.bytes_in) == (4, 5, 20)
    taken = topic.sent()
    assert taken.messages + first.dropped == 5
    assert topic.dropped() == first.dropped
    topic._deliver(group(4, 4), lambda: None)
    sent, dropped = topic.sent(), topic.dropped()
    assert sent.messages + dropped == 13
    assert topic.consumer_count() == 2
    first.remove_consumer(one[0])
    topic.consumer_gone(first)
    assert topic.subscriptions == {"s": first} and topic.in_use
    first.remove_consumer(other[0])
    topic.consumer_gone(first)
    assert topic.subscriptions == {} and not topic.in_use
    assert (topic.sent(), topic.dropped()) == (sent, dropped)
    second = place.subscription(topic)
    topic.consumer_gone(first)
    assert topic.subscriptions == {"s": second}, "an earlier life of that name is not this one"
    join(second, 10)
    topic._deliver(group(1, 1), lambda: None)
    assert topic.sent() == SentTotals(sent.messages + 2, sent.bytes + 10)
    assert topic.dropped() == dropped
    topic._deliver(group(20, 1), lambda: None)
    assert (topic.sent().messages, topic.dropped()) == (sent.messages + 22, dropped + 1)
    done: list[int] = []
    topic.delete_subscription("s", lambda: done.append(1))
    assert (done, second.consumers, topic.subscriptions) == ([1], [], {})
    assert (topic.sent().messages, topic.dropped()) == (sent.messages + 22, dropped + 1)
    place.subscription(topic)
    topic._deliver(group(3), lambda: None)
    assert topic.dropped() == dropped + 4, "without a consumer everything is dropped"


def test_a_closed_topic_takes_nobody_in() -> None:
    place = Place()
    topic = place.topics.make(NAME)
    _, connection = join(place.subscription(topic))
    place.topics.remove(NAME)
    assert (connection.closed, topic.closed, topic.subscriptions) == (1, True, {})
    with pytest.raises(ServiceNotReadyError, match="Topic is temporarily unavailable"):
        place.subscription(topic)
    producer: Any = None
    with pytest.raises(ServiceNotReadyError, match="Topic is temporarily unavailable"):
        topic.add_producer(producer, None, lambda error: None)
    place.topics.remove(NAME)
    assert place.news == [(NAME.fqn, True), (NAME.fqn, False)], "fine if there is none"


@pytest.mark.parametrize(("delete", "after_ms", "goes"), [(True, 59_999, 0), (True, 60_000, 1), (False, 1 << 40, 0)])
def test_an_idle_topic_goes_when_its_policy_says_so(delete: bool, after_ms: int, goes: int) -> None:
    """Measured from when it was last seen in use (rule 13.10)."""
    place = Place()
    place.policies[NAME.fqn] = TopicPolicies(inactive_topics=InactiveTopics(delete, 60))
    topic = place.topics.make(NAME)
    subscription = place.subscription(topic)
    consumer, _ = join(subscription)
    place.clock.ms += 1 << 41
    assert place.topics.collect() == 0, "it is in use"
    subscription.remove_consumer(consumer)
    topic.consumer_gone(subscription)
    place.clock.ms += after_ms
    assert place.topics.collect() == goes
    assert (NAME.fqn in place.topics.by_name) == (not goes)
    assert place.news[1:] == [(NAME.fqn, False)] * goes


def test_policies_reach_the_topics_that_they_concern(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place()
    topic, other = place.topics.make(NAME), place.topics.make(OTHER)
    seen: list[str] = []
    monkeypatch.setattr(topic.checks, "set_policies", lambda policies: seen.append(NAME.fqn))
    monkeypatch.setattr(other.checks, "set_policies", lambda policies: seen.append(OTHER.fqn))
    place.topics.policies_changed(lambda name: name == OTHER)
    assert seen == [OTHER.fqn]
    place.topics.close()
    assert topic.closed and other.closed and place.topics.by_name == {}


@pytest.mark.parametrize("before", [0, 5])
def test_a_limit_of_consumers_that_changes_holds_for_subscriptions_that_are_there(before: int) -> None:
    """For those who come from then on, as on persistent topics (rule 5.1.5)."""
    place = Place()
    place.policies[NAME.fqn] = TopicPolicies(max_consumers_per_subscription=before)
    subscription = place.subscription(place.topics.make(NAME))
    join(subscription)
    join(subscription)
    place.policies[NAME.fqn] = TopicPolicies(max_consumers_per_subscription=2)
    place.topics.policies_changed(lambda name: name == OTHER)
    join(subscription)
    place.topics.policies_changed(lambda name: name == NAME)
    with pytest.raises(ConsumerBusyError, match=r"^Subscription reached max consumers limit$"):
        join(subscription)
    assert len(subscription.consumers) == 3
    place.policies[NAME.fqn] = TopicPolicies()
    place.topics.policies_changed(lambda name: True)
    join(subscription)


@pytest.mark.parametrize("many", [16, 17, 40])
def test_however_many_subscriptions_there_are_each_gets_every_group_in_order_before_it_is_answered(many: int) -> None:
    """More than sixteen have their turns one after the other, in several turns of the loop."""

    async def main() -> None:
        place = Place()
        topic = place.topics.make(NAME)
        connections = [join(place.subscription(topic, f"s{number}"), 1000)[1] for number in range(many)]
        answered: list[int] = []
        groups = [FanOutGroup([b"%d" % number], None, 1, 1) for number in range(3)]
        for number, one in enumerate(groups):
            topic._deliver(one, partial(answered.append, number))
            for _ in range(50):
                await asyncio.sleep(0)
        assert answered == [0, 1, 2]
        assert {tuple(connection.passed) for connection in connections} == {(b"0", b"1", b"2")}
        assert (topic.entries_in, topic.msg_in, topic.bytes_in) == (3, 3, 3)

    asyncio.run(main())
