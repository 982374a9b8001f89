"""What a user does with the admin client; the same program drives magnetar and Apache Pulsar.

It works in a tenant of its own, which it removes.
"""

from __future__ import annotations

import pytest

from magnetar import Admin
from magnetar.admin_api.models.clusters import TenantInfo
from magnetar.admin_api.models.policies import BacklogQuotaLimit, DispatchRateLimit, RetentionPolicies
from magnetar.admin_api.models.schemas import PostSchemaPayload
from magnetar.admin_client.errors import AdminConflictError, AdminNotFoundError

_RECORD = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def run(admin: Admin, tenant: str) -> None:
    """Make everything, look at it, and remove it."""
    cluster = next(name for name in admin.clusters.list() if name != "global")
    assert admin.brokers.version()
    admin.tenants.create(tenant, TenantInfo(admin_roles=["admin"], allowed_clusters=[cluster]))
    assert admin.tenants.get(tenant).admin_roles == ["admin"]
    namespace = f"{tenant}/orders"
    admin.namespaces.create(namespace)
    try:
        _namespace(admin, namespace)
        _topic(admin, f"persistent://{namespace}/a topic, 100 %")
        _partitioned(admin, f"persistent://{namespace}/parts")
        _schema(admin, f"persistent://{namespace}/typed")
    finally:
        for topic in admin.topics.list_partitioned(namespace):
            admin.topics.delete_partitioned(topic, force=True)
        for topic in admin.topics.list(namespace):
            admin.topics.delete(topic, force=True)
        admin.namespaces.delete(namespace)
        admin.tenants.delete(tenant)
    assert tenant not in admin.tenants.list()


def _namespace(admin: Admin, namespace: str) -> None:
    with pytest.raises(AdminConflictError) as refused:
        admin.namespaces.create(namespace)
    assert (refused.value.http_status, refused.value.method) == (409, "PUT")
    assert admin.namespaces.get_retention(namespace) is None
    wanted = RetentionPolicies(retention_time_in_minutes=60, retention_size_in_mb=100)
    admin.namespaces.set_retention(namespace, wanted)
    assert admin.namespaces.get_retention(namespace) == wanted
    admin.namespaces.set_dispatch_rate(namespace, DispatchRateLimit(dispatch_throttling_rate_in_msg=1000))
    found = admin.namespaces.get_dispatch_rate(namespace)
    assert found is not None and found.dispatch_throttling_rate_in_msg == 1000
    quota = BacklogQuotaLimit(limit_size=1 << 20, policy="producer_exception")
    admin.namespaces.set_backlog_quota(namespace, quota)
    assert admin.namespaces.get_backlog_quotas(namespace)["destination_storage"].limit_size == 1 << 20
    admin.namespaces.grant_permission(namespace, "billing", ["consume"])
    assert admin.namespaces.get_permissions(namespace) == {"billing": ["consume"]}
    policies = admin.namespaces.get_policies(namespace)
    assert policies.retention_policies == wanted
    assert policies.bundles is not None and len(policies.bundles.boundaries) == policies.bundles.num_bundles + 1


def _topic(admin: Admin, topic: str) -> None:
    with pytest.raises(AdminNotFoundError) as refused:
        admin.topics.get_stats(topic)
    assert refused.value.path.endswith("/a%20topic%2C%20100%20%25/stats")
    admin.topics.create(topic)
    admin.subscriptions.create(topic, "s/1", "earliest")
    assert admin.subscriptions.list(topic) == ["s/1"]
    stats = admin.topics.get_stats(topic, get_precise_backlog=True)
    assert stats.subscriptions["s/1"].msg_backlog == 0
    # Apache Pulsar writes the slash of the name as %2F there
    assert len(admin.topics.get_internal_stats(topic).cursors) == 1
    admin.topic_policies.set_message_ttl(topic, message_ttl=60)
    admin.subscriptions.skip_all_messages(topic, "s/1")
    assert admin.topics.get_last_message_id(topic).entry_id == -1
    assert admin.lookups.lookup_topic(topic).broker_url
    admin.subscriptions.delete(topic, "s/1")


def _partitioned(admin: Admin, topic: str) -> None:
    admin.topics.create_partitioned(topic, 2)
    admin.topics.update_partitions(topic, 3)
    assert admin.topics.get_partitions(topic).partitions == 3
    assert len(admin.topics.get_partitioned_stats(topic).partitions) == 3


def _schema(admin: Admin, topic: str) -> None:
    admin.topics.create(topic)
    made = admin.schemas.create(topic, PostSchemaPayload(type="JSON", schema_text=_RECORD, properties={}))
    assert made.version.version == 0
    assert admin.schemas.get(topic).type == "JSON"
    assert [one.version for one in admin.schemas.get_all(topic).get_schema_responses] == [0]
