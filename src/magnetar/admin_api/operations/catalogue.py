"""Every operation of the REST interface, in the order of the description."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.operation import Operation
from magnetar.admin_api.operations.brokers import BROKERS
from magnetar.admin_api.operations.clusters import CLUSTERS
from magnetar.admin_api.operations.namespace_policies import NAMESPACE_POLICIES
from magnetar.admin_api.operations.namespaces import NAMESPACES
from magnetar.admin_api.operations.offload import OFFLOAD
from magnetar.admin_api.operations.permissions import PERMISSIONS
from magnetar.admin_api.operations.schemas import SCHEMAS
from magnetar.admin_api.operations.subscriptions import SUBSCRIPTIONS
from magnetar.admin_api.operations.tenants import TENANTS
from magnetar.admin_api.operations.topic_policies import TOPIC_POLICIES
from magnetar.admin_api.operations.topics import TOPICS
from magnetar.admin_api.operations.transactions import TRANSACTIONS

OPERATIONS: Final[tuple[Operation, ...]] = (
    *BROKERS,
    *CLUSTERS,
    *TENANTS,
    *NAMESPACES,
    *NAMESPACE_POLICIES,
    *PERMISSIONS,
    *TOPICS,
    *TOPIC_POLICIES,
    *SUBSCRIPTIONS,
    *SCHEMAS,
    *TRANSACTIONS,
    *OFFLOAD,
)
"""Each of them once."""

GROUPS: Final = {
    "brokers": "Brokers: health, version, settings.",
    "metrics": "What the broker measures.",
    "broker_stats": "What the broker has to do, as JSON.",
    "clusters": "Clusters and their addresses, failure domains and isolation policies.",
    "bookies": "Bookies, of which magnetar has none.",
    "resource_groups": "Namespaces that share rates.",
    "resource_quotas": "What bundles may need of a broker.",
    "tenants": "Tenants with their roles and clusters.",
    "namespaces": "Namespaces, their policies and permissions.",
    "topics": "Topics, their partitions, statistics and messages.",
    "topic_policies": "Policies of single topics.",
    "subscriptions": "Subscriptions, their cursors and backlogs.",
    "schemas": "Schemas of topics and their versions.",
    "lookups": "Which broker serves a topic.",
    "transactions": "Transactions and their coordinators.",
    "permissions": "Why a role may do something or not.",
}
"""The groups of operations, each with a sentence."""
