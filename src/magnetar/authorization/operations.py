"""What can be done to tenants, namespaces and topics, under the names of Apache Pulsar's enumerations.

The names are those of ``TenantOperation``, ``NamespaceOperation``, ``TopicOperation``, ``PolicyName`` and
``PolicyOperation`` of Pulsar's ``common.policies.data``, because they appear in the reasons of refusals.
"""

from __future__ import annotations

from enum import Enum


class TenantOperation(Enum):
    """Operations on a tenant."""

    CREATE_NAMESPACE = "create_namespace"
    DELETE_NAMESPACE = "delete_namespace"
    LIST_NAMESPACES = "list_namespaces"
    GET_TENANT = "get_tenant"
    UPDATE_TENANT = "update_tenant"
    DELETE_TENANT = "delete_tenant"


class NamespaceOperation(Enum):
    """Operations on a namespace."""

    CREATE_TOPIC = "create_topic"
    GET_TOPIC = "get_topic"
    GET_TOPICS = "get_topics"
    DELETE_TOPIC = "delete_topic"
    ADD_BUNDLE = "add_bundle"
    GET_BUNDLE = "get_bundle"
    DELETE_BUNDLE = "delete_bundle"
    CLEAR_BACKLOG = "clear_backlog"
    UNSUBSCRIBE = "unsubscribe"
    PACKAGES = "packages"
    GET_PERMISSION = "get_permission"
    GRANT_PERMISSION = "grant_permission"
    REVOKE_PERMISSION = "revoke_permission"


class TopicOperation(Enum):
    """Operations on a topic."""

    LOOKUP = "lookup"
    PRODUCE = "produce"
    CONSUME = "consume"
    COMPACT = "compact"
    EXPIRE_MESSAGES = "expire_messages"
    OFFLOAD = "offload"
    PEEK_MESSAGES = "peek_messages"
    RESET_CURSOR = "reset_cursor"
    SKIP = "skip"
    TERMINATE = "terminate"
    UNLOAD = "unload"
    GRANT_PERMISSION = "grant_permission"
    GET_PERMISSION = "get_permission"
    REVOKE_PERMISSION = "revoke_permission"
    ADD_BUNDLE_RANGE = "add_bundle_range"
    GET_BUNDLE_RANGE = "get_bundle_range"
    DELETE_BUNDLE_RANGE = "delete_bundle_range"
    SUBSCRIBE = "subscribe"
    GET_SUBSCRIPTIONS = "get_subscriptions"
    UNSUBSCRIBE = "unsubscribe"
    GET_STATS = "get_stats"
    GET_METADATA = "get_metadata"
    GET_BACKLOG_SIZE = "get_backlog_size"
    SET_REPLICATED_SUBSCRIPTION_STATUS = "set_replicated_subscription_status"
    GET_REPLICATED_SUBSCRIPTION_STATUS = "get_replicated_subscription_status"
    TRIM_TOPIC = "trim_topic"
    DELETE_METADATA = "delete_metadata"
    UPDATE_METADATA = "update_metadata"


class PolicyOperation(Enum):
    """Whether a policy is read or changed."""

    READ = "read"
    WRITE = "write"


class PolicyName(Enum):
    """Policies of namespaces and topics."""

    ALL = "all"
    ALLOW_CLUSTERS = "allow_clusters"
    ANTI_AFFINITY = "anti_affinity"
    AUTO_SUBSCRIPTION_CREATION = "auto_subscription_creation"
    AUTO_TOPIC_CREATION = "auto_topic_creation"
    BACKLOG = "backlog"
    COMPACTION = "compaction"
    DELAYED_DELIVERY = "delayed_delivery"
    DEDUPLICATION = "deduplication"
    DEDUPLICATION_SNAPSHOT = "deduplication_snapshot"
    DISPATCHER_PAUSE_ON_ACK_STATE_PERSISTENT = "dispatcher_pause_on_ack_state_persistent"
    ENCRYPTION = "encryption"
    ENTRY_FILTERS = "entry_filters"
    INACTIVE_TOPIC = "inactive_topic"
    MAX_CONSUMERS = "max_consumers"
    MAX_PRODUCERS = "max_producers"
    MAX_SUBSCRIPTIONS = "max_subscriptions"
    MAX_TOPICS = "max_topics"
    MAX_UNACKED = "max_unacked"
    OFFLOAD = "offload"
    PARTITION = "partition"
    PERSISTENCE = "persistence"
    RATE = "rate"
    REPLICATION = "replication"
    REPLICATION_RATE = "replication_rate"
    RESOURCEGROUP = "resourcegroup"
    RETENTION = "retention"
    SCHEMA_COMPATIBILITY_STRATEGY = "schema_compatibility_strategy"
    SNAPSHOT_INTERVAL = "snapshot_interval"
    SUBSCRIPTION_AUTH_MODE = "subscription_auth_mode"
    SUBSCRIPTION_EXPIRATION_TIME = "subscription_expiration_time"
    TTL = "ttl"
