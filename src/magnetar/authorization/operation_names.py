"""What can be asked about by name: operations, policies, commands of the wire, and whole requests of HTTP.

A question such as "may alice clear-backlog there?" names what alice wants as people do: by Pulsar's enumerations
(``GET_STATS``), by the words of pulsar-admin (``clear-backlog``, ``set-retention``), by the command on the wire
(``GET_LAST_MESSAGE_ID``), or as the request itself (``PUT /admin/v2/persistent/acme/orders/t/unload``). Case does not
count, nor whether words are joined by ``-`` or ``_``. The object decides which of several meanings is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import SimpleNamespace
from typing import Any, Final

from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.operations import (
    NamespaceOperation,
    PolicyName,
    PolicyOperation,
    TenantOperation,
    TopicOperation,
)
from magnetar.authorization.permission_table.command_permissions import COMMAND_PERMISSIONS, CommandPermission
from magnetar.authorization.permission_table.policy_words import NAMESPACE_POLICIES, TOPIC_POLICIES
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.commands.names import name_of


@dataclass(frozen=True, slots=True)
class AskedObject:
    """What a question is about; the most exact part that is given counts."""

    tenant: str = ""
    namespace: NamespaceName | None = None
    topic: TopicName | None = None
    subscription: str = ""
    namesake: TopicName | None = None
    """The topic of the same name in the other domain, if it exists."""

    @property
    def kind(self) -> str:
        """``topic``, ``namespace``, ``tenant`` or ``cluster``."""
        if self.topic is not None:
            return "topic"
        if self.namespace is not None:
            return "namespace"
        return "tenant" if self.tenant else "cluster"

    @property
    def owner(self) -> str:
        """The tenant it belongs to; empty for the cluster."""
        if self.topic is not None:
            return self.topic.tenant
        return self.tenant if self.namespace is None else self.namespace.tenant


_Accesses = Callable[[AskedObject], Iterable[Access]]

TOPIC_WORDS: Final[Mapping[str, TopicOperation]] = {
    "publish": TopicOperation.PRODUCE,
    "receive": TopicOperation.CONSUME,
    "read": TopicOperation.CONSUME,
    "clear-backlog": TopicOperation.SKIP,
    "skip-all": TopicOperation.SKIP,
    "peek": TopicOperation.PEEK_MESSAGES,
    "stats": TopicOperation.GET_STATS,
    "trim": TopicOperation.TRIM_TOPIC,
    "schema": TopicOperation.GET_METADATA,
}
"""Words of pulsar-admin and of people for operations on topics."""
_OPENED_BY: Final[Mapping[type, type]] = {
    **dict.fromkeys((c.CommandSend, c.SendRun, c.CommandCloseProducer), c.CommandProducer),
    **dict.fromkeys(
        (
            *(c.CommandFlow, c.CommandAck, c.AckRun, c.CommandRedeliverUnacknowledgedMessages, c.CommandCloseConsumer),
            *(c.CommandGetLastMessageId, c.CommandConsumerStats),
        ),
        c.CommandSubscribe,
    ),
    c.CommandWatchTopicListClose: c.CommandWatchTopicList,
}
"""Commands that need no more than what opened their handle did, each with that command."""


def accesses_of(name: str, of: AskedObject) -> tuple[Access, ...]:
    """What the operation of that name asks for on that object. Raises InvalidValueError, which names similar ones."""
    word = normal(name)
    names = names_for(of.kind)
    if word not in names:
        raise InvalidValueError(_unknown(name, word, of.kind))
    return tuple(names[word](of))


def note_on(name: str, of: AskedObject) -> str:
    """What the broker asks besides for that operation, in words; empty if nothing, or if it is no command."""
    if of.namesake is None:
        return ""
    rows = (
        COMMAND_PERMISSIONS[_OPENED_BY.get(kind, kind)]
        for kind in COMMAND_PERMISSIONS
        if wire_name(kind) == normal(name)
    )
    return next((row.inside for row in rows), "")


def normal(name: str) -> str:
    """Return a name as it is compared: small letters, words joined by ``-``."""
    return re.sub(r"[\s_-]+", "-", name.strip()[:200].lower())


def names_for(kind: str) -> Mapping[str, _Accesses]:
    """All names that mean something for a kind of object.

    Made anew for each question, which takes less than a millisecond: kept, their 1,500 small objects would keep the
    memory around them as well, which is that of a burst if the first question came in one.
    """
    return {"topic": _topic_names, "namespace": _namespace_names, "tenant": _tenant_names, "cluster": _cluster_names}[
        kind
    ]()


def _topic_names() -> dict[str, _Accesses]:
    found: dict[str, _Accesses] = dict(_command_names(("topic", "partitions", "subscriptions")))
    for operation in (*TopicOperation, *TOPIC_WORDS.items()):
        word, meant = (normal(operation.name), operation) if isinstance(operation, TopicOperation) else operation
        found[word] = _on_topic(meant)
    found |= {
        normal(one.name): _in_namespace(one)
        for one in (NamespaceOperation.CREATE_TOPIC, NamespaceOperation.DELETE_TOPIC)
    }
    found |= dict(_policy_names(TOPIC_POLICIES, of_topic=True))
    return found


def _namespace_names() -> dict[str, _Accesses]:
    found: dict[str, _Accesses] = dict(_command_names(("namespace",)))
    found |= {normal(one.name): _in_namespace(one) for one in NamespaceOperation}
    found |= dict(_policy_names(NAMESPACE_POLICIES, of_topic=False))
    found["create-namespace"] = _in_tenant(TenantOperation.CREATE_NAMESPACE)
    found["delete-namespace"] = _in_tenant(TenantOperation.DELETE_NAMESPACE)
    found["unload"] = _of_cluster("unload namespaces")
    found["set-properties"] = found["get-properties"] = _in_tenant(None)
    return found


def _tenant_names() -> dict[str, _Accesses]:
    found = {normal(one.name): _in_tenant(one) for one in TenantOperation}
    found["administer"] = _in_tenant(None)
    found["create-tenant"] = _of_cluster("create tenants")
    return found


def _cluster_names() -> dict[str, _Accesses]:
    whats = ("list tenants", "create tenants", "list brokers", "change clusters", "show the configuration")
    return {normal(what): _of_cluster(what) for what in whats}


def _of_cluster(what: str) -> _Accesses:
    return lambda of: [ClusterAccess(what)]


def _on_topic(operation: TopicOperation) -> _Accesses:
    def accesses(of: AskedObject) -> Iterable[Access]:
        assert of.topic is not None
        yield TopicAccess(of.topic, operation, of.subscription or None)

    return accesses


def _in_namespace(operation: NamespaceOperation) -> _Accesses:
    def accesses(of: AskedObject) -> Iterable[Access]:
        yield NamespaceAccess(_namespace_of(of), operation)

    return accesses


def _in_tenant(operation: TenantOperation | None) -> _Accesses:
    return lambda of: [TenantAccess(of.owner, operation)]


def _policy_names(words: Mapping[str, PolicyName], *, of_topic: bool) -> Iterable[tuple[str, _Accesses]]:
    """``get-``, ``set-`` and ``remove-`` before the word of the path and before the policy's name."""
    for word, policy in {**words, **{one.name: one for one in PolicyName}}.items():
        kebab = normal(re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word))
        for verb, operation in (("get", _READ), ("set", _WRITE), ("remove", _WRITE)):
            yield f"{verb}-{kebab}", _policy(policy, operation, of_topic=of_topic)


_READ, _WRITE = PolicyOperation.READ, PolicyOperation.WRITE


def _policy(policy: PolicyName, operation: PolicyOperation, *, of_topic: bool) -> _Accesses:
    def accesses(of: AskedObject) -> Iterable[Access]:
        yield PolicyAccess(_namespace_of(of), policy, operation, of.topic if of_topic else None)

    return accesses


def _namespace_of(of: AskedObject) -> NamespaceName:
    found = of.namespace if of.topic is None else of.topic.namespace
    assert found is not None
    return found


# commands of the wire -------------------------------------------------------------------------------------------------


def _command_names(parts: tuple[str, ...]) -> Iterable[tuple[str, _Accesses]]:
    """Commands that name one of these, with what their row of the permission table asks for."""
    for kind in COMMAND_PERMISSIONS:
        opener = _OPENED_BY.get(kind, kind)
        asked, fields = COMMAND_PERMISSIONS[opener], set(getattr(opener, "__dataclass_fields__", ()))
        if asked.accesses is not None and (fields & set(parts) or ("consumer_id" in fields and "topic" in parts)):
            yield wire_name(kind), _of_command(asked)


def wire_name(kind: type) -> str:
    """``get-last-message-id`` for :class:`CommandGetLastMessageId`."""
    return normal(re.sub(r"(?<!^)(?=[A-Z])", "_", name_of(kind)))


def _of_command(row: CommandPermission) -> _Accesses:
    def accesses(of: AskedObject) -> Iterable[Access]:
        topic = "" if of.topic is None else of.topic.fqn
        name = of.subscription or None
        command: Any = SimpleNamespace(
            schema=None, topic=topic, subscription=name, initial_subscription_name=name, consumer_id=0,
            partitions=[topic],
            subscriptions=[SimpleNamespace(topic=topic, subscription=name)],
            namespace="" if of.namespace is None else of.namespace.text,
        )  # fmt: skip
        assert row.accesses is not None
        # the others need no schema
        return row.accesses(command, _Supposed(of, new_schema=row is COMMAND_PERMISSIONS[c.CommandGetOrCreateSchema]))

    return accesses


class _Supposed:
    """What a question about a command supposes: the consumer of a consumer's, and whether a schema is new."""

    def __init__(self, of: AskedObject, *, new_schema: bool) -> None:
        self._of = of
        self._new_schema = new_schema

    def consumed(self, consumer_id: int) -> tuple[TopicName, str] | None:
        assert self._of.topic is not None
        return self._of.topic, self._of.subscription

    def sharing(self, topic: TopicName, schema: object, *, first: bool = False) -> TopicName | None:
        return self._of.namesake if self._new_schema else None


def _unknown(name: str, word: str, kind: str) -> str:
    similar = get_close_matches(word, names_for(kind), n=3, cutoff=0.6)
    elsewhere = [other for other in ("topic", "namespace", "tenant", "cluster") if word in names_for(other)]
    of = {"cluster": "the cluster (no tenant, namespace or topic is given)"}.get(kind, f"a {kind}")
    said = f"{name[:80]!r} is no operation on {of}"
    if elsewhere:
        return f"{said}; it is one on a {' or a '.join(elsewhere)}: name that"
    if similar:
        return f"{said}; did you mean {' or '.join(similar)}?"
    return f"{said}; docs/permissions.md lists them"
