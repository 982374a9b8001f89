"""Which clusters may be named as those that a namespace or a topic is replicated to.

Geo-replication is not built: to hear yes, and to find the other cluster empty later, would be worse than a refusal
(decision 034). The checks before it are Pulsar's, in its order and with its texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.metadata.clusters import GLOBAL
from magnetar.metadata.resources import Resources
from magnetar.model.errors import ForbiddenError, InvalidValueError, NotAvailableError, PreconditionFailedError
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json

_REPLICATED: Final = 2
"""The least number of clusters that a replicated namespace has."""


def texts_of(value: Json) -> list[str]:
    """The texts in a list, or none."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def require_replicable(resources: Resources, own: str, namespace: NamespaceName, value: Json) -> None:
    """Raise unless the namespace may be replicated to these clusters and to no other one than ``own``."""
    clusters = _named(value)
    for cluster in clusters:
        if not resources.clusters.exists(cluster):
            raise ForbiddenError(f"Invalid cluster id: {cluster}")
    require_allowed(resources, namespace, clusters)
    require_own(own, clusters)


def require_replicable_topic(
    resources: Resources, own: str, namespace: NamespaceName, value: Json, *, is_global: bool
) -> None:
    """Raise unless a topic of the namespace may be replicated to these clusters and to no other one than ``own``."""
    clusters = _named(value)
    if not is_global and own not in clusters:
        raise PreconditionFailedError(
            "Can not remove local cluster from the local topic-level replication clusters policy"
        )
    if is_global and len(texts_of(resources.namespaces.policies(namespace).get("replication_clusters"))) < _REPLICATED:
        raise PreconditionFailedError(
            "Please do not use the global topic level policy when namespace-level replication is not enabled, because "
            "the global level policy relies on namespace-level replication"
        )
    require_replicable(resources, own, namespace, value)


def _named(value: Json) -> list[str]:
    """The clusters in a list. Raises PreconditionFailedError if there are none, or one is that of no place."""
    clusters = texts_of(value)
    if not clusters:
        raise PreconditionFailedError("ClusterIds should not be null or empty")
    if GLOBAL in clusters:
        raise PreconditionFailedError("Cannot specify global in the list of replication clusters")
    return clusters


def require_allowed(resources: Resources, namespace: NamespaceName, clusters: Sequence[str]) -> None:
    """Raise ForbiddenError or InvalidValueError for a cluster that the tenant or the namespace may not use."""
    require_allowed_to_tenant(resources, namespace.tenant, clusters)
    allowed = texts_of((resources.namespaces.find(namespace) or {}).get("allowed_clusters"))
    for cluster in clusters:
        if allowed and cluster not in allowed:
            raise InvalidValueError(
                f"Cluster [{cluster}] is not in the list of allowed clusters list for namespace [{namespace}]"
            )


def require_allowed_to_tenant(resources: Resources, tenant: str, clusters: Sequence[str]) -> None:
    """Raise ForbiddenError for a cluster that the tenant may not use."""
    allowed = texts_of((resources.tenants.find(tenant) or {}).get("allowedClusters"))
    for cluster in clusters:
        if cluster not in allowed:
            raise ForbiddenError(
                f"Cluster [{cluster}] is not in the list of allowed clusters list for tenant [{tenant}]"
            )


def require_own(own: str, clusters: Sequence[str]) -> None:
    """Raise NotAvailableError for another cluster than this one."""
    for cluster in clusters:
        if cluster != own:
            raise NotAvailableError(
                f"geo-replication is not available in magnetar: no message would arrive in cluster {cluster}; only "
                f"[{own}] can be set"
            )
