"""The numbers of each producer and consumer that /metrics shows if it is asked to."""

from __future__ import annotations

from magnetar.admin.values.counters import ConsumerCounters, ProducerCounters
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import NonPersistentSubscription
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep.rates import Rates


def producer_counters(topic: Topic | NonPersistentTopic, rates: Rates) -> list[ProducerCounters]:
    """Return the counters of all producers of a topic."""
    return [
        ProducerCounters(
            producer.info.name, producer.info.producer_id, rates.of(producer).messages_in, rates.of(producer).bytes_in
        )
        for producer in topic.producers
    ]


def consumer_counters(subscription: Subscription | NonPersistentSubscription, rates: Rates) -> list[ConsumerCounters]:
    """Return the counters of all consumers of a subscription."""
    found = []
    for consumer in subscription.consumers:
        rate, state = rates.of(consumer), consumer.state
        found.append(
            ConsumerCounters(
                consumer.name, consumer.consumer_id, rate.messages_out, rate.bytes_out, rate.redelivered, rate.acked,
                state.unacked, int(state.blocked), state.permits, consumer.messages_out, consumer.bytes_out,
            )
        )  # fmt: skip
    return found
