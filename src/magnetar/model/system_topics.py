"""Topics that the broker keeps for itself (rule 8.1): hidden unless asked for, and but for one not for clients to make.

So it does with one subscription of each topic that it compacts.
"""

from __future__ import annotations

from typing import Final

from magnetar.model.names import TopicName

CHANGE_EVENTS: Final = "__change_events"
"""Changes of topics' policies, one such topic per namespace."""
HEARTBEAT: Final = "healthcheck"
COMPACTION_SUBSCRIPTION: Final = "__compaction"
"""The cursor of compaction, shown among the subscriptions of a topic (rule 4.3.9)."""
_EVENTS: Final = frozenset(
    (
        CHANGE_EVENTS,
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
    )
)
ASSIGN_TOPIC: Final = "persistent://pulsar/system/transaction_coordinator_assign"
"""Each of its partitions is a transaction coordinator; a broker without transactions has none."""

_SYSTEM_NAMESPACE: Final = "pulsar/system"
_PENDING_ACK: Final = "__transaction_pending_ack"


def is_system_topic(topic: TopicName) -> bool:
    """Whether the broker keeps the topic for itself, in any namespace."""
    name = topic.local_name if topic.partition_index < 0 else topic.parent.local_name
    if name == HEARTBEAT and is_heartbeat(topic):
        return True
    if name in _EVENTS or name.endswith(_PENDING_ACK):
        return True
    return topic.namespace.text == _SYSTEM_NAMESPACE and (
        name.startswith(("transaction_coordinator_assign", "__transaction_log_", "resource-usage"))
    )


def is_change_events(topic: TopicName) -> bool:
    """Whether it is the topic of a namespace's changed policies, which a reader may open before the first change."""
    return topic.persistent and topic.local_name == CHANGE_EVENTS


def is_heartbeat(topic: TopicName) -> bool:
    """``pulsar/<host:port>/healthcheck``, perhaps with a cluster: its namespace exists without being created."""
    namespace = topic.namespace
    host, colon, port = namespace.local_name.rpartition(":")
    named_after_broker = bool(host and colon) and port.isdecimal()
    return topic.local_name == HEARTBEAT and namespace.tenant == "pulsar" and named_after_broker


def is_reserved(topic: TopicName) -> bool:
    """Whether the name has the form of a pending-ack log, which REST refuses to create (rule 8.2)."""
    return topic.local_name.endswith(_PENDING_ACK)
