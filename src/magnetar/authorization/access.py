"""An operation on an object: what the permission table asks for and what a decision is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from magnetar.authorization.operations import (
    NamespaceOperation,
    PolicyName,
    PolicyOperation,
    TenantOperation,
    TopicOperation,
)
from magnetar.model.names import NamespaceName, TopicName


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Something about the whole cluster, which superusers may do only."""

    what: str
    """In words, for the reason of a refusal: ``list tenants``."""


@dataclass(frozen=True, slots=True)
class TenantAccess:
    """An operation on a tenant, which its administrators may do."""

    tenant: str
    operation: TenantOperation | None = None
    """``None``: administering it in general, as granting permissions is."""


@dataclass(frozen=True, slots=True)
class NamespaceAccess:
    """An operation on a namespace."""

    namespace: NamespaceName
    operation: NamespaceOperation


@dataclass(frozen=True, slots=True)
class PolicyAccess:
    """Reading or changing a policy of a namespace, or of one of its topics."""

    namespace: NamespaceName
    policy: PolicyName
    operation: PolicyOperation
    topic: TopicName | None = None
    """The topic whose own policy it is; ``None``: the namespace's."""


@dataclass(frozen=True, slots=True)
class TopicAccess:
    """An operation on a topic, or on one of its subscriptions."""

    topic: TopicName
    operation: TopicOperation
    subscription: str | None = None


Access: TypeAlias = ClusterAccess | TenantAccess | NamespaceAccess | PolicyAccess | TopicAccess
