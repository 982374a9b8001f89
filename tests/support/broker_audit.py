"""What a running broker counts, compared with what there is: asked in the middle of every simulation and at its end."""

from __future__ import annotations

from magnetar.app.node import Broker
from magnetar.broker.topic.topic import Topic
from tests.support.store_audit import audit


def audit_broker(broker: Broker) -> None:
    """Raise AssertionError where a total is not the sum of its parts."""
    audit(broker.store)
    for topic in broker.service.topics.values():
        if not topic.closed:
            audit_topic(topic)


def audit_topic(topic: Topic) -> None:
    """Of one topic: its subscriptions, what is delayed, transactions."""
    if topic.delays.index is not None:
        topic.delays.index.check()
    if topic.transactions is not None:
        topic.transactions.buffer.check()
        for pending in topic.transactions.beside.now.values():
            pending.check()
    for name, subscription in topic.subscriptions.items():
        assert subscription.name == name
        members = subscription.consumers
        dispatcher = subscription.dispatcher
        assert subscription.cursor.attended == bool(members)
        if dispatcher is None:
            assert not members
            continue
        dispatcher.check()
        assert sorted(map(id, dispatcher.consumers)) == sorted(id(consumer.state) for consumer in members)
        for state in dispatcher.consumers:
            assert not [ordinal for ordinal in state.pending if ordinal >= topic.log.end or ordinal < 0]
            assert not [ordinal for ordinal in state.pending if subscription.cursor.acknowledged(ordinal)]
        for consumer in members:
            assert consumer.messages_out >= consumer.entries_out or not consumer.messages_out
