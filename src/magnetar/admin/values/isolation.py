"""Isolation policies: which brokers shall serve which namespaces, as Pulsar checks and reads them.

Namespaces and brokers are named by regular expressions, which match as a whole. They are RE2's, so that none takes more
than linear time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt
from magnetar.config.setting_field import INT_MAX
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError, PreconditionFailedError
from magnetar.model.policies import Json, JsonObject
from magnetar.model.topic_pattern import compiled

EXPRESSIONS_MAX: Final = 1000
"""Of all policies of a cluster together: each of them is asked for each broker and each namespace that is shown."""
_EXPRESSION_MAX: Final = 1000
_SCOPES: Final = ("all_matching", "none", "changed")
_LIMITS: Final = ("min_limit", "usage_threshold")
_SHOWN: Final = 500


class BrokerIsolation(NamedTuple):
    """What the policies of a cluster say about one broker."""

    policy: str | None
    namespaces: list[str]
    primary: bool

    def as_json(self, broker: str) -> JsonObject:
        """Return the policy as Pulsar shows it."""
        named: JsonObject = {} if self.policy is None else {"policyName": self.policy}
        return {"brokerName": broker, **named, "namespaceRegex": [*self.namespaces], "primary": self.primary}


def isolation_policy(name: str, body: JsonObject | None) -> JsonObject:
    """A policy as it is stored and shown. Raises InvalidValueError, which begins as Pulsar's text does."""
    try:
        return _checked(body or {})
    except (InvalidValueError, InvalidTopicNameError) as error:
        shown = json.dumps(body)[:_SHOWN]
        raise InvalidValueError(
            f"Invalid format of input policy data. policy: {name}; data: {shown}; {error}"
        ) from None


def with_policy(policies: JsonObject, name: str, policy: JsonObject) -> JsonObject:
    """The policies of a cluster with one set. Raises PreconditionFailedError if they are too many together."""
    after = {**policies, name: policy}
    total = sum(len(_texts(one, part)) for one in after.values() for part in ("namespaces", "primary", "secondary"))
    if total > EXPRESSIONS_MAX:
        raise PreconditionFailedError(
            f"the isolation policies of a cluster have {EXPRESSIONS_MAX} regular expressions at most, not {total}"
        )
    return after


def isolation_of(policies: JsonObject, broker: str) -> BrokerIsolation:
    """What the policies say about one broker: of several that name it, the last by name counts."""
    found = BrokerIsolation(None, [], False)
    for name, policy in sorted(policies.items()):
        primary = _matches(_texts(policy, "primary"), broker)
        if primary or _matches(_texts(policy, "secondary"), broker):
            found = BrokerIsolation(name, [*found.namespaces, *_texts(policy, "namespaces")], primary)
    return found


def assignment_of(policies: JsonObject, namespace: str, broker: str) -> JsonObject:
    """How one broker serves a namespace: as its primary or secondary broker, or shared when no policy says anything."""
    for _, policy in sorted(policies.items()):
        if _matches(_texts(policy, "namespaces"), namespace):
            primary = _matches(_texts(policy, "primary"), broker)
            secondary = _matches(_texts(policy, "secondary"), broker)
            word = "primary" if primary else "secondary" if secondary else "shared"
            return {"broker_assignment": word, "is_controlled": True, "is_active": True}
    return {"broker_assignment": "shared", "is_controlled": False, "is_active": True}


def _checked(body: JsonObject) -> JsonObject:
    namespaces, primary = _expressions(body, "namespaces"), _expressions(body, "primary")
    secondary = _expressions(body, "secondary", may_be_empty=True)
    policy: JsonObject = {"namespaces": [*namespaces], "primary": [*primary], "secondary": [*secondary]}
    policy["auto_failover_policy"] = _failover(body.get("auto_failover_policy"))
    scope = body.get("unload_scope")
    if scope is not None:
        if scope not in _SCOPES:
            raise InvalidValueError(f"unload_scope is one of {', '.join(_SCOPES)}, not {excerpt(scope)}")
        policy["unload_scope"] = scope
    return policy


def _expressions(body: JsonObject, name: str, *, may_be_empty: bool = False) -> list[str]:
    given = body.get(name)
    if not isinstance(given, list) or not (given or may_be_empty):
        raise InvalidValueError(f"expected a list of regular expressions as {name}, got {excerpt(given)}")
    if len(given) > EXPRESSIONS_MAX:
        raise InvalidValueError(f"expected {EXPRESSIONS_MAX} regular expressions as {name} at most, got {len(given)}")
    found = [coercion.text(item, f"a text in {name}") for item in given]
    for text in found:
        if len(text) > _EXPRESSION_MAX:
            raise InvalidValueError(f"a regular expression in {name} has {_EXPRESSION_MAX} characters at most")
        _expression(text)
    return found


def _failover(value: Json) -> Json:
    given = value if isinstance(value, dict) else {}
    parameters = given.get("parameters")
    if given.get("policy_type") != "min_available" or not isinstance(parameters, dict):
        raise InvalidValueError(
            'expected auto_failover_policy such as {"policy_type": "min_available", "parameters": {"min_limit": "1", '
            f'"usage_threshold": "80"}}}}, got {excerpt(value)}'
        )
    texts = coercion.texts(parameters, "an object of texts as parameters")
    for name in _LIMITS:
        if name not in texts:
            raise InvalidValueError(f"{name} is missing in parameters")
        coercion.number(texts[name], f"a whole number as {name}", most=INT_MAX)
    return {"parameters": {**texts}, "policy_type": "min_available"}


@lru_cache(EXPRESSIONS_MAX)
def _expression(text: str) -> Any:
    return compiled(text, text)


def _matches(expressions: Iterable[str], name: str) -> bool:
    return any(_expression(text).fullmatch(name) is not None for text in expressions)


def _texts(policy: Json, member: str) -> list[str]:
    found = policy.get(member) if isinstance(policy, dict) else None
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
