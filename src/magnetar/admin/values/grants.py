"""Grants as the metadata keeps them (``auth_policies`` of a namespace), and the changes that routes make to them.

The shape is Apache Pulsar's (rule 11.3.2)::

    namespace_auth           {role: [action, ...]}
    destination_auth         {topic: {role: [action, ...]}}
    subscription_auth_roles  {subscription: [role, ...]}

Every function here takes such an object and returns a new one. All grants of a namespace are one record, so their
length is bounded: Pulsar's ZooKeeper ends at the same megabyte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from magnetar.admin.values.json_document import excerpt
from magnetar.model.errors import InvalidValueError, NotFoundError, PreconditionFailedError
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject

ACTIONS: Final = ("produce", "consume", "functions", "sources", "sinks", "packages")
"""What can be granted; magnetar acts on the first two, the others are kept and shown."""
ROLE_CHARACTERS_MAX: Final = 1024
SUBSCRIPTION_CHARACTERS_MAX: Final = 4096
GRANTS_BYTES_MAX: Final = 1 << 20

TopicGrant: TypeAlias = tuple[TopicName, str, list[Json]]
"""A topic, a role, and the actions that the role is granted there."""

_NAMESPACE: Final = "namespace_auth"
_TOPICS: Final = "destination_auth"
_SUBSCRIPTIONS: Final = "subscription_auth_roles"


def role_name(value: Json, what: str = "a role") -> str:
    """Return the name of a role. Raises InvalidValueError if it cannot be one."""
    if not isinstance(value, str):
        raise InvalidValueError(f"expected {what} as a text, got {excerpt(value)}")
    if not value.strip():
        raise InvalidValueError(f"expected {what}, got an empty text")
    if value != value.strip():
        raise InvalidValueError(f"{what} begins and ends without white space, got {excerpt(value)}")
    if len(value) > ROLE_CHARACTERS_MAX:
        raise InvalidValueError(f"{what} has {ROLE_CHARACTERS_MAX} characters at most, got {len(value)}")
    _require_printable(value, what)
    return value


def subscription_name(value: str) -> str:
    """Return the name of a subscription that roles are granted. Raises InvalidValueError."""
    if not value:
        raise InvalidValueError("expected the name of a subscription, got an empty text")
    if len(value) > SUBSCRIPTION_CHARACTERS_MAX:
        raise InvalidValueError(f"names of subscriptions have {SUBSCRIPTION_CHARACTERS_MAX} characters at most")
    _require_printable(value, "the name of a subscription")
    return value


def actions(value: Json) -> list[Json]:
    """Return a list of actions, sorted and each once. Raises InvalidValueError, which names the unknown one."""
    if not isinstance(value, list):
        raise InvalidValueError(f'expected a list of actions such as ["produce"], got {excerpt(value)}')
    for action in value:
        if action not in ACTIONS:
            raise InvalidValueError(f"{excerpt(action)} is no action; there are {', '.join(ACTIONS)}")
    return [action for action in ACTIONS if action in value]


def roles(value: Json, what: str = "roles") -> list[Json]:
    """Return a list of roles, each once, in the given order. Raises InvalidValueError."""
    if not isinstance(value, list):
        raise InvalidValueError(f"expected {what} as a list of texts, got {excerpt(value)}")
    return [*dict.fromkeys(role_name(item, f"a role in {what}") for item in value)]


def auth_policies(value: Json) -> Json:
    """Check all grants of a new namespace. Raises InvalidValueError."""
    given = _given(value)
    granted: JsonObject = {
        _NAMESPACE: _actions_by_role(given.get(_NAMESPACE)),
        _TOPICS: {_topic(name): _actions_by_role(found) for name, found in _given(given.get(_TOPICS)).items()},
        _SUBSCRIPTIONS: {
            subscription_name(name): roles(found, f"the roles of {excerpt(name)}")
            for name, found in _given(given.get(_SUBSCRIPTIONS)).items()
        },
    }
    return _bounded(granted)


# changes --------------------------------------------------------------------------------------------------------------


def granted_on_namespace(policies: Mapping[str, Json], role: str, granted: list[Json]) -> JsonObject:
    """``role`` may do ``granted`` in the namespace, and nothing else that was granted there before."""
    found = of_namespace(policies)
    found[role] = granted
    return _with(policies, _NAMESPACE, found)


def revoked_on_namespace(policies: Mapping[str, Json], role: str) -> JsonObject:
    """Nothing is granted to ``role`` on the namespace itself."""
    found = of_namespace(policies)
    found.pop(role, None)
    return _with(policies, _NAMESPACE, found)


def granted_on_topics(policies: Mapping[str, Json], granted: Iterable[TopicGrant]) -> JsonObject:
    """Each role may do those actions on the topic, and nothing else that it was granted there before."""
    by_topic = dict(_object(_auth(policies).get(_TOPICS)))
    for topic, role, allowed in granted:
        by_topic[topic.fqn] = {**_object(by_topic.get(topic.fqn)), role: allowed}
    return _with(policies, _TOPICS, by_topic)


def revoked_on_topics(policies: Mapping[str, Json], revoked: Iterable[tuple[TopicName, str]]) -> JsonObject:
    """Nothing is granted to those roles on those topics themselves."""
    by_topic = dict(_object(_auth(policies).get(_TOPICS)))
    for topic, role in revoked:
        left = {name: found for name, found in _object(by_topic.pop(topic.fqn, None)).items() if name != role}
        if left:
            by_topic[topic.fqn] = left
    return _with(policies, _TOPICS, by_topic)


def granted_on_subscription(policies: Mapping[str, Json], subscription: str, allowed: list[Json]) -> JsonObject:
    """Only those roles, of those that may consume, may use the subscription; an empty list restricts no role."""
    return _with(policies, _SUBSCRIPTIONS, {**of_subscriptions(policies), subscription: allowed})


def revoked_on_subscription(policies: Mapping[str, Json], subscription: str, role: str) -> JsonObject:
    """``role`` is taken off the subscription's list; with the last role the restriction ends. Raises NotFoundError."""
    found = of_subscriptions(policies)
    listed = found.pop(subscription, None)
    if not isinstance(listed, list):
        raise NotFoundError(f"subscription {excerpt(subscription)} is granted to no role in particular")
    left = [one for one in listed if one != role]
    if left:
        found[subscription] = left
    return _with(policies, _SUBSCRIPTIONS, found)


# views ----------------------------------------------------------------------------------------------------------------


def of_namespace(policies: Mapping[str, Json]) -> JsonObject:
    """What is granted on the namespace itself: actions by role."""
    return dict(_object(_auth(policies).get(_NAMESPACE)))


def of_subscriptions(policies: Mapping[str, Json]) -> JsonObject:
    """Which roles each restricted subscription is left to."""
    return dict(_object(_auth(policies).get(_SUBSCRIPTIONS)))


def of_topic(policies: Mapping[str, Json], topic: TopicName) -> JsonObject:
    """What is granted on a topic by its namespace and on the topic itself together: actions by role."""
    found = of_namespace(policies)
    for role, granted in _object(_object(_auth(policies).get(_TOPICS)).get(topic.fqn)).items():
        both = [*_list(found.get(role)), *_list(granted)]
        found[role] = [action for action in ACTIONS if action in both]
    return found


def _bounded(granted: JsonObject) -> JsonObject:
    """Return the grants unless they take too much. Raises PreconditionFailedError."""
    size = len(json.dumps(granted, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))
    if size > GRANTS_BYTES_MAX:
        raise PreconditionFailedError(
            f"the grants of a namespace take {GRANTS_BYTES_MAX} bytes at most, and these would take {size}: revoke "
            "what is not used any more, or grant to fewer roles"
        )
    return granted


def _with(policies: Mapping[str, Json], part: str, found: JsonObject) -> JsonObject:
    empty: JsonObject = {_NAMESPACE: {}, _TOPICS: {}, _SUBSCRIPTIONS: {}}
    return _bounded({**empty, **_auth(policies), part: found})


def _auth(policies: Mapping[str, Json]) -> JsonObject:
    return _object(policies.get("auth_policies"))


def _given(value: Json) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidValueError(f"expected a JSON object, got {excerpt(value)}")
    return value


def _object(stored: Json) -> JsonObject:
    """A part of what is stored; older versions did not look at what they stored there, and that grants nothing."""
    return stored if isinstance(stored, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _actions_by_role(value: Json) -> JsonObject:
    return {role_name(role): actions(granted) for role, granted in _given(value).items()}


def _topic(name: str) -> str:
    return TopicName.parse(name).fqn


def _require_printable(value: str, what: str) -> None:
    control = next((character for character in value if not character.isprintable()), None)
    if control is not None:
        raise InvalidValueError(f"{what} holds no control characters, got U+{ord(control):04X} in {excerpt(value)}")
