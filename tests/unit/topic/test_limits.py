"""Limits of topics and subscriptions, also when a policy changes them (rules 5.1.5, 5.1.6, 5.9.10)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.limits import check_consumer, check_subscription, with_policies
from magnetar.model.errors import ConsumerBusyError, NotAllowedError
from magnetar.model.subscription_types import SubType
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.model.topic_policies import TopicPolicies
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic
from tests.support.subscription_stand import Stand

T = "persistent://a/b/t"


def test_types() -> None:
    policies = TopicPolicies(subscription_types_enabled=frozenset(("Exclusive", "Key_Shared")))
    check_consumer(T, policies, SubType.Key_Shared, lambda: 5)
    with pytest.raises(NotAllowedError) as refused:
        check_consumer(T, policies, SubType.Shared, lambda: 0)
    assert str(refused.value) == "Topic[{persistent://a/b/t}] doesn't support Shared sub type!"


def test_counts() -> None:
    policies = TopicPolicies(max_consumers=2, max_subscriptions=3)
    check_consumer(T, policies, SubType.Shared, lambda: 1)
    with pytest.raises(ConsumerBusyError, match=r"^Topic reached max consumers limit$"):
        check_consumer(T, policies, SubType.Shared, lambda: 2)
    check_subscription(T, policies, 2)
    with pytest.raises(NotAllowedError, match=f"^Exceed the maximum number of subscriptions of the topic: {T}$"):
        check_subscription(T, policies, 3)
    check_consumer(T, TopicPolicies(), SubType.Shared, lambda: pytest.fail("counted without a limit"))
    check_subscription(T, TopicPolicies(), 10_000)


def test_a_topic_with_as_many_subscriptions_as_it_may_have_opens_those_it_has_and_that_of_compaction() -> None:
    async def main() -> None:
        place = LoadedTopic()
        topic = place.topic
        topic.set_policies(TopicPolicies(max_subscriptions=2))
        topic.create_subscription("a", 0)
        topic.create_subscription("b", 0)
        for durable in (True, False):
            with pytest.raises(NotAllowedError, match="Exceed the maximum number of subscriptions"):
                topic.subscription("c", durable=durable, ordinal=lambda: 0, properties={}, done=lambda: None)
        known = topic.subscriptions["a"]
        assert topic.subscription("a", durable=True, ordinal=lambda: 0, properties={}, done=lambda: None) is known
        topic.create_subscription(COMPACTION_SUBSCRIPTION, 0)
        assert topic.durable_subscriptions() == ["a", "b", COMPACTION_SUBSCRIPTION]
        await place.durable()
        topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_a_raised_limit_lets_a_blocked_consumer_go_on(sub_type: SubType) -> None:
    stand = Stand(max_unacked_messages_per_consumer=4)
    stand.append_many(20)
    _, connection = stand.join(sub_type=sub_type, permits=100)
    assert len(connection.got) == 4
    subscription = stand.subscription
    subscription.set_settings(with_policies(subscription.settings, TopicPolicies(max_unacked_per_consumer=10)))
    assert len(connection.got) == 10
    subscription.set_settings(replace(subscription.settings, max_unacked_messages_per_consumer=0))
    assert len(connection.got) == 20


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_a_lowered_limit_blocks(sub_type: SubType) -> None:
    stand = Stand()
    stand.append_many(10)
    consumer, connection = stand.join(sub_type=sub_type, permits=100)
    settings = replace(stand.subscription.settings, max_unacked_messages_per_subscription=6)
    stand.subscription.set_settings(settings)
    stand.append_many(5)
    assert len(connection.got) == 10
    assert stand.subscription.stats().blocked_on_unacked
    dispatcher = stand.subscription.dispatcher
    assert dispatcher is not None
    dispatcher.check()
    stand.subscription.acks.take(consumer, range(7))
    assert len(connection.got) == 13
    dispatcher.check()


@pytest.mark.parametrize("sub_type", list(SubType))
def test_sizes_of_reads_change_while_consumers_are_there(sub_type: SubType) -> None:
    """dispatcherMaxReadBatchSize and dispatcherMaxReadSizeBytes are dynamic."""
    stand = Stand(active_consumer_failover_delay_ms=0)
    stand.log.append(*[1] * 40)
    stand.log.resident = 40
    consumer, connection = stand.join(sub_type=sub_type, permits=1)
    stand.log.finish_read()
    settings = stand.subscription.settings
    settings = replace(settings, dispatcher_max_read_batch_size=7, dispatcher_max_read_size_bytes=123)
    stand.subscription.set_settings(settings)
    stand.subscription.flow(consumer, 30)
    assert [(entries, size) for _, entries, size, _ in stand.log.reads] == [(7, 123)]
    stand.log.finish_read()
    assert len(connection.ordinals) >= 8


def test_a_lowered_limit_of_consumers_keeps_those_that_are_there() -> None:
    stand = Stand()
    stand.join("a")
    stand.join("b")
    stand.subscription.set_settings(replace(stand.subscription.settings, max_consumers_per_subscription=1))
    assert len(stand.subscription.consumers) == 2
    with pytest.raises(ConsumerBusyError, match=r"^Subscription reached max consumers limit$"):
        stand.join("c")


@pytest.mark.parametrize("sub_type", [SubType.Shared, SubType.Key_Shared])
def test_who_has_left_holds_nothing(sub_type: SubType) -> None:
    stand = Stand()
    stand.append_many(5)
    consumer, connection = stand.join(sub_type=sub_type, permits=10)
    assert (len(connection.got), consumer.state.unacked) == (5, 5)
    stand.subscription.remove_consumer(consumer)
    assert (consumer.state.unacked, len(consumer.state.pending)) == (0, 0)
    assert not stand.subscription.stats().blocked_on_unacked


def test_equal_policies_make_one_object_for_all_topics_and_others_another() -> None:
    """A broker may have a hundred thousand topics."""
    settings, policies = DispatchSettings(), TopicPolicies(max_consumers_per_subscription=3, max_unacked_per_consumer=5)
    found = with_policies(settings, policies)
    assert (found.max_consumers_per_subscription, found.max_unacked_messages_per_consumer) == (3, 5)
    assert found.max_unacked_messages_per_subscription == policies.max_unacked_per_subscription
    alike = TopicPolicies(max_consumers_per_subscription=3, max_unacked_per_consumer=5, message_ttl_s=9)
    assert with_policies(DispatchSettings(), alike) is found
    assert with_policies(settings, policies._replace(max_unacked_per_subscription=7)) != found
    assert with_policies(DispatchSettings(unacked_share=1), policies) != found
