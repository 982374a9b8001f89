"""What a running broker counts, compared with what there is: asked in the middle of every simulation and at its end."""

from __future__ import annotations

from magnetar.app.node import Broker
from magnetar.broker.connection.consumer_outbox import ConsumerOutbox
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.broker.connection.session import Session
from magnetar.broker.delivery.dispatchers.multiple_consumers import MultipleConsumers
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.topic import Topic
from tests.support.store_audit import audit


def audit_broker(broker: Broker) -> None:
    """Raise AssertionError where a total is not the sum of its parts."""
    audit(broker.store)
    for topic in broker.service.topics.values():
        if not topic.closed:
            audit_topic(topic)
    audit_connections(broker)


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
            assert consumer.messages_out >= consumer.entries_out >= len(consumer.state.pending)
            if isinstance(dispatcher, MultipleConsumers):
                assert consumer.messages_out >= consumer.state.unacked


def audit_connections(broker: Broker) -> None:
    """Of all connections: the memory they hold, and that clients and topics agree on what is open."""
    unfinished = broker.connections.unfinished
    assert unfinished.bytes == sum(listener._held for listener in broker.connections)
    assert unfinished._wanted == sum(frame.size for frame in unfinished._large.values())
    assert unfinished._large.keys() <= set(broker.connections)
    sessions = [listener.session for listener in broker.connections if not listener.session.closed]
    assert all(session.pending_publishes >= 0 for session in sessions)
    if not broker.store.journal.pending_bytes:
        assert not any(session.pending_publishes for session in sessions), "nothing is being written"
    topics, consumers = broker.service.topics, set()
    for session in sessions:
        for consumer_id, held in session.consumers.items():
            if isinstance(held, OpenConsumer):
                assert held.consumer.consumer_id == consumer_id
                assert held.consumer in held.subscription.consumers
                consumers.add(held.consumer)
        for producer in session.producers.values():
            if isinstance(producer, Producer) and producer.open and producer.log.name in topics:
                assert topics[producer.log.name].producers.holder(producer.info.name) is producer
    for topic in topics.values():
        for subscription in topic.subscriptions.values():
            for consumer in subscription.consumers:
                if isinstance(consumer.connection, ConsumerOutbox) and consumer.connection.session in sessions:
                    assert consumer in consumers, "its client has closed it"
        for producer in topic.producers:
            assert producer.open
            owner, number = producer.connection.session, producer.info.producer_id
            if isinstance(owner, Session) and owner in sessions:
                assert number in owner.producers or number in owner.reopening, "its client has closed it"
