"""Whether one role may do something: the logic of Pulsar's PulsarAuthorizationProvider, without its waiting.

In this order (rule 12.7):

1. a superuser may do everything;
2. an administrator of a tenant may do everything within it; no one else may change policies, grants, topics or
   namespaces;
3. what concerns a subscription needs ``consume``, the subscription's name not reserved for other roles, and in the
   mode Prefix a name that begins with the role;
4. an action on a topic is granted by its namespace, by the topic itself, or, to a partition, by its partitioned topic;
   an action on a namespace by the namespace;
5. with wildcards, the roles of namespace and topic may be written ``prefix*`` and ``*suffix``. Those of a partitioned
   topic do not count for its partitions that way, as in Pulsar.

Without a role nothing is allowed. Stricter than Pulsar in two points: a subscription whose name is blank but not empty
is checked like any other, and what the broker keeps for itself is changed by administrators only: its topics (rule 8.1)
and the cursor of compaction (rule 4.3.9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from magnetar.authorization import remedies
from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.decision import Decision
from magnetar.authorization.grants import Grants, NamespaceGrants, RolePatterns
from magnetar.authorization.operations import NamespaceOperation, TopicOperation
from magnetar.authorization.remedies import shown
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION, is_system_topic

PRODUCE: Final = "produce"
CONSUME: Final = "consume"

TOPIC_ACTIONS: Final[Mapping[TopicOperation, tuple[str, ...]]] = {
    **dict.fromkeys((TopicOperation.LOOKUP, TopicOperation.GET_STATS, TopicOperation.GET_METADATA), (PRODUCE, CONSUME)),
    TopicOperation.PRODUCE: (PRODUCE,),
    **dict.fromkeys(
        (
            *(TopicOperation.GET_SUBSCRIPTIONS, TopicOperation.CONSUME, TopicOperation.SUBSCRIBE),
            *(TopicOperation.UNSUBSCRIBE, TopicOperation.SKIP, TopicOperation.EXPIRE_MESSAGES),
            *(TopicOperation.PEEK_MESSAGES, TopicOperation.RESET_CURSOR, TopicOperation.GET_BACKLOG_SIZE),
            TopicOperation.SET_REPLICATED_SUBSCRIPTION_STATUS,
            TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS,
        ),
        (CONSUME,),
    ),
}
"""Actions of which one is enough; an operation that is not here is for administrators of the tenant."""

_READS: Final = frozenset(
    (
        *(TopicOperation.GET_SUBSCRIPTIONS, TopicOperation.PEEK_MESSAGES, TopicOperation.GET_BACKLOG_SIZE),
        TopicOperation.GET_REPLICATED_SUBSCRIPTION_STATUS,
    )
)
"""Operations of consumers that change no subscription."""

NAMESPACE_ACTIONS: Final[Mapping[NamespaceOperation, tuple[str, ...]]] = {
    NamespaceOperation.PACKAGES: ("packages",),
    **dict.fromkeys(
        (NamespaceOperation.GET_TOPIC, NamespaceOperation.GET_TOPICS, NamespaceOperation.GET_BUNDLE),
        (CONSUME, PRODUCE),
    ),
    **dict.fromkeys((NamespaceOperation.UNSUBSCRIBE, NamespaceOperation.CLEAR_BACKLOG), (CONSUME,)),
}
"""The same for namespaces."""


class RoleRules:
    """Decides about one role at a time; see :class:`magnetar.authorization.authorizer.Authorizer` for callers."""

    def __init__(self, grants: Grants, grantable: Callable[[TopicName], bool] = lambda topic: True) -> None:
        """``grantable``: whether permissions of a topic can be granted; otherwise remedies grant on its namespace."""
        self._grants = grants
        self._grantable = grantable

    def decide_any(self, role: str | None, others: Iterable[str], access: Access) -> Decision:
        """Whether one of the roles may do that; the refusal is that of the first."""
        decision = self.decide(role, access)
        if decision.allowed or role is None:
            return decision
        return next((found for other in others if (found := self.decide(other, access)).allowed), decision)

    def decide(self, role: str | None, access: Access) -> Decision:
        """Whether the role may do that, with the reason and the remedy."""
        if role is None:
            return Decision(False, "there is no role: the client has not authenticated", "log in")
        if role in self._grants.superusers:
            return Decision(True, f"{shown(role)} is a superuser")
        if isinstance(access, ClusterAccess):
            return Decision(
                False,
                f"{shown(role)} is no superuser, and only superusers may {access.what}",
                partial(remedies.become_superuser, role),
            )
        tenant = tenant_of(access)
        admins = self._grants.tenant_admins(tenant)
        if admins is None:
            remedy = partial(remedies.create_tenant, tenant, role, self._grants.cluster)
            return Decision(False, "Tenant does not exist", remedy, missing=True)
        if role in admins:
            return Decision(True, f"{shown(role)} is an administrator of the tenant {tenant}")
        if isinstance(access, TopicAccess):
            actions = TOPIC_ACTIONS.get(access.operation)
            if actions is not None and not _of_the_broker(access, actions):
                return self._on_topic(role, access, actions)
        elif isinstance(access, NamespaceAccess):
            actions = NAMESPACE_ACTIONS.get(access.operation)
            if actions is not None:
                return self._on_namespace(role, access.namespace, actions)
        return Decision(
            False,
            f"{shown(role)} is no administrator of the tenant {tenant}, and only those may {named(access)}",
            partial(remedies.become_tenant_admin, tenant, admins, role, self._grants.allowed_clusters(tenant)),
        )

    def _on_namespace(self, role: str, namespace: NamespaceName, actions: tuple[str, ...]) -> Decision:
        grants = self._grants.namespace(namespace)
        if grants is None:
            return _no_namespace(role, namespace, actions)
        for action in actions:
            found = self._namespace_grant(grants, role, action)
            if found is not None:
                return Decision(True, f"{found} has {action} on {namespace}")
        wanted = actions[0]
        return Decision(
            False,
            _without(role, actions, namespace),
            partial(remedies.grant_on_namespace, namespace, role, (*grants.actions(role), wanted)),
        )

    def _on_topic(self, role: str, access: TopicAccess, actions: tuple[str, ...]) -> Decision:
        topic = access.topic
        grants = self._grants.namespace(topic.namespace)
        if grants is None:
            return _no_namespace(role, topic.namespace, actions, topic)
        # the missing action first: who has none hears nothing of the namespace's subscriptions
        refusals: list[Decision] = []
        reason = next(filter(None, (self._topic_grant(grants, role, topic, action) for action in actions)), "")
        if not reason:
            refusals.append(
                Decision(
                    False,
                    _without(role, actions, topic.namespace, topic),
                    partial(self._topic_remedy, grants, role, topic, actions[0]),
                )
            )
        if access.subscription and actions == (CONSUME,):
            refusals += _reserved(grants, role, topic, access.subscription)
        if not refusals:
            return Decision(True, reason)
        return replace(refusals[0], suggestion=lambda: remedies.all_of(refused.remedy for refused in refusals))

    def _topic_remedy(self, grants: NamespaceGrants, role: str, topic: TopicName, action: str) -> str:
        if not self._grantable(topic.parent):
            return remedies.grant_on_namespace(topic.namespace, role, (*grants.actions(role), action))
        # on a partitioned topic itself, which holds for the partitions that are added later, too
        return remedies.grant_on_topic(topic.parent, role, (*grants.topic_actions(topic.parent.fqn, role), action))

    def _topic_grant(self, grants: NamespaceGrants, role: str, topic: TopicName, action: str) -> str:
        """What grants the action, in words; empty if nothing does."""
        found = self._namespace_grant(grants, role, action)
        if found is not None:
            return f"{found} has {action} on {topic.namespace}"
        roles = grants.topic_roles(topic.fqn)
        found = _granted(roles, role, action)
        if found is None and self._grants.wildcards:
            found = _granted_by_pattern(grants.topic_patterns(topic.fqn), roles, role, action)
        if found is not None:
            return f"{found} has {action} on {shown(topic.fqn)}"
        if topic.is_partition and action in grants.topic_actions(topic.parent.fqn, role):
            return f"{shown(role)} has {action} on {shown(topic.parent.fqn)}"
        return ""

    def _namespace_grant(self, grants: NamespaceGrants, role: str, action: str) -> str | None:
        """The role or pattern that the namespace grants the action to, for reasons."""
        if action in grants.actions(role):
            return shown(role)
        if not self._grants.wildcards:
            return None
        return _granted_by_pattern(grants.namespace_patterns(), grants.namespace_roles(), role, action)


def tenant_of(access: TenantAccess | NamespaceAccess | PolicyAccess | TopicAccess) -> str:
    """The tenant whose administrators may do it."""
    if isinstance(access, TenantAccess):
        return access.tenant
    return access.topic.tenant if isinstance(access, TopicAccess) else access.namespace.tenant


def named(access: Access) -> str:
    """Return what is asked, in words: ``compact persistent://public/default/t``."""
    if isinstance(access, ClusterAccess):
        return access.what
    if isinstance(access, TenantAccess):
        verb = "administer" if access.operation is None else access.operation.value
        return f"{verb} the tenant {shown(access.tenant)}"
    if isinstance(access, NamespaceAccess):
        return f"{access.operation.value} {shown(access.namespace.text)}"
    if isinstance(access, PolicyAccess):
        of = access.namespace.text if access.topic is None else access.topic.fqn
        return f"{access.operation.value} the policy {access.policy.value} of {shown(of)}"
    subscription = f", subscription {shown(access.subscription)}" if access.subscription else ""
    return f"{access.operation.value} {shown(access.topic.fqn)}{subscription}"


def _of_the_broker(access: TopicAccess, actions: tuple[str, ...]) -> bool:
    """Whether it changes what the broker keeps for itself."""
    if actions == (CONSUME,) and access.subscription == COMPACTION_SUBSCRIPTION:
        return access.operation not in _READS
    return actions == (PRODUCE,) and is_system_topic(access.topic)


def _without(role: str, actions: tuple[str, ...], namespace: NamespaceName, topic: TopicName | None = None) -> str:
    nor = "" if topic is None else f" nor on {shown(topic.fqn)}"
    return f"{shown(role)} has no {' or '.join(actions)} on {namespace}{nor}"


def _no_namespace(
    role: str, namespace: NamespaceName, actions: tuple[str, ...], topic: TopicName | None = None
) -> Decision:
    """Refuse as for a namespace that exists; only the remedy, for those who may read grants, says that it does not."""
    return Decision(
        False,
        _without(role, actions, namespace, topic),
        lambda: remedies.all_of(
            (remedies.create_namespace(namespace), remedies.grant_on_namespace(namespace, role, actions[:1]))
        ),
    )


def _reserved(grants: NamespaceGrants, role: str, topic: TopicName, subscription: str) -> Iterator[Decision]:
    """Yield what the subscription's name refuses to the role."""
    roles = grants.subscription_roles(subscription)
    if roles is not None and role not in roles:
        yield Decision(
            False,
            f"the subscription {shown(subscription)} in {topic.namespace} is reserved, and not for {shown(role)}",
            lambda: remedies.grant_on_subscription(topic.namespace, subscription, (*roles, role)),
        )
    if grants.prefix_mode and not subscription.startswith(role):
        yield Decision(
            False,
            "Failed to create consumer - The subscription name needs to be prefixed by the authentication role, "
            f"like {shown(role)}-xxxx for topic: {shown(topic.fqn)}",
            partial(remedies.end_prefix_mode, topic.namespace),
            prefix_missing=True,
        )


def _granted(roles: Mapping[str, Json], role: str, action: str) -> str | None:
    actions = roles.get(role)
    return shown(role) if isinstance(actions, list) and action in actions else None


def _granted_by_pattern(patterns: RolePatterns, roles: Mapping[str, Json], role: str, action: str) -> str | None:
    for pattern in patterns.fitting(role):
        found = _granted(roles, pattern, action)
        if found is not None:
            return f"{shown(role)} fits {found}, which"
    return None
