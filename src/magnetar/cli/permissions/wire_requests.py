"""The commands of a self-test, as they stand on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from magnetar.authorization.permission_table.matrix import SUBSCRIPTION
from magnetar.client.connection import Connection
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c

_TXN: Final = c.TxnId(0, 1 << 40)
"""A transaction that was never begun."""
_SCHEMA: Final = c.Schema(name="self-test", type=c.SchemaType.STRING, schema_data=b"")

_MADE: Final[Mapping[type, Callable[[int, int, TopicName], c.Command]]] = {
    c.CommandLookupTopic: lambda request, handle, topic: c.CommandLookupTopic(topic.fqn, request),
    c.CommandPartitionedTopicMetadata: lambda request, handle, topic: c.CommandPartitionedTopicMetadata(
        topic.fqn, request, metadata_auto_creation_enabled=False
    ),
    c.CommandGetTopicsOfNamespace: lambda request, handle, topic: c.CommandGetTopicsOfNamespace(
        request, topic.namespace.text
    ),
    c.CommandWatchTopicList: lambda request, handle, topic: c.CommandWatchTopicList(
        request, handle, topic.namespace.text, f"persistent://{topic.namespace}/none"
    ),
    c.CommandGetSchema: lambda request, handle, topic: c.CommandGetSchema(request, topic.fqn),
    c.CommandGetOrCreateSchema: lambda request, handle, topic: c.CommandGetOrCreateSchema(request, topic.fqn, _SCHEMA),
    c.CommandProducer: lambda request, handle, topic: c.CommandProducer(topic.fqn, handle, request),
    c.CommandSubscribe: lambda request, handle, topic: c.CommandSubscribe(
        topic.fqn, SUBSCRIPTION, c.SubType.Shared, handle, request
    ),
    c.CommandAddPartitionToTxn: lambda request, handle, topic: c.CommandAddPartitionToTxn(request, _TXN, (topic.fqn,)),
    c.CommandAddSubscriptionToTxn: lambda request, handle, topic: c.CommandAddSubscriptionToTxn(
        request, _TXN, (c.TxnSubscription(topic.fqn, SUBSCRIPTION),)
    ),
    c.CommandEndTxnOnPartition: lambda request, handle, topic: c.CommandEndTxnOnPartition(
        request, _TXN, topic.fqn, c.TxnAction.ABORT
    ),
    c.CommandEndTxnOnSubscription: lambda request, handle, topic: c.CommandEndTxnOnSubscription(
        request, _TXN, c.TxnSubscription(topic.fqn, SUBSCRIPTION), c.TxnAction.ABORT
    ),
}


def command_of(kind: type, connection: Connection, topic: TopicName) -> c.Command:
    """A command of that kind about the topic. Raises LookupError for one that a self-test cannot make."""
    return _MADE[kind](connection.new_request_id(), connection.new_handle(), topic)
