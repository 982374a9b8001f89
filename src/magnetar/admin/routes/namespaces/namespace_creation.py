"""Policies given with a new namespace: each is checked as if it were set alone.

Without the check, a list where an object belongs would stay in the metadata and fail every use of the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from magnetar.admin.http.parameters import NAMESPACE
from magnetar.admin.routes.namespaces.namespace_policies import POLICIES
from magnetar.admin.values import coercion, grants
from magnetar.admin.values import policy_values as v
from magnetar.admin.values.json_document import excerpt
from magnetar.authorization.access import Access
from magnetar.authorization.permission_table.request_target import RequestTarget
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError, PreconditionFailedError
from magnetar.model.names import NamespaceName
from magnetar.model.policies import POLICY_FIELDS, Json, JsonObject

_HASHES: Final = 0xFFFFFFFF
_BUNDLES_MAX: Final = 1 << 16
_NONE_IF_EMPTY: Final = frozenset(("antiAffinityGroup", "resource_group_name"))
_NONE_IF_NEGATIVE: Final = frozenset(
    (
        "max_consumers_per_subscription",
        "max_consumers_per_topic",
        "max_producers_per_topic",
        "max_subscriptions_per_topic",
        "max_topics_per_namespace",
        "max_unacked_messages_per_consumer",
        "max_unacked_messages_per_subscription",
    )
)
"""Of which a number below 0 stands for none in the policies that older versions of Apache Pulsar show."""


def checked(wanted: JsonObject, cluster: str) -> JsonObject:
    """Return the checked policies among the members. Raises InvalidValueError, which names the member.

    Clients in Go send every member, and an empty text for a group that there is none of.
    """
    found: JsonObject = {}
    for name, value in wanted.items():
        if name in POLICY_FIELDS and not _none(name, value):
            try:
                found[name] = _CHECKS[name](value)
            except (InvalidValueError, InvalidTopicNameError, PreconditionFailedError) as error:
                raise InvalidValueError(f"{name}: {error}") from None
    return found


def _none(name: str, value: Json) -> bool:
    if name in _NONE_IF_NEGATIVE and isinstance(value, int) and value < 0:
        return True
    return value is None or (name in _NONE_IF_EMPTY and value == "")


def asked_for(namespace: NamespaceName, policies: JsonObject) -> Iterator[Access]:
    """Yield what setting each of the policies alone needs, by the row of its own route."""
    row = ROUTE_PERMISSIONS["POST", NAMESPACE + "/{policy}"]
    for word, about in POLICIES.items():
        if about.key.partition(".")[0] in policies:
            yield from row.accesses(RequestTarget(namespace.tenant, namespace, word=word))


def _per_cluster(check: v.Check) -> v.Check:
    def of_clusters(value: Json) -> Json:
        return {cluster: check(rate) for cluster, rate in v.mapping(value).items() if rate is not None}

    return of_clusters


def _quotas(value: Json) -> Json:
    quotas = v.mapping(value)
    for kind in quotas:
        if kind not in v.QUOTA_LIMITS:
            raise InvalidValueError(f"{excerpt(kind)} is no type of quota; there are {', '.join(v.QUOTA_LIMITS)}")
    return {kind: v.backlog_quota(quota, "Set") for kind, quota in quotas.items() if quota is not None}


def _bundles(value: Json) -> Json:
    """Bundles: ascending boundaries from 0x00000000 to 0xffffffff, or only their number."""
    given = v.mapping(value)
    listed = given.get("boundaries")
    if not listed:
        count = given.get("numBundles")
        if count is not None and not 0 <= coercion.number(count, "numBundles") <= _BUNDLES_MAX:
            raise InvalidValueError(f"numBundles is from 1 to {_BUNDLES_MAX}")
        return {"numBundles": 0 if count is None else coercion.number(count)}
    if not isinstance(listed, list) or len(listed) > _BUNDLES_MAX:
        raise InvalidValueError(f"expected a list of at most {_BUNDLES_MAX} boundaries, got {excerpt(listed)}")
    places = [_place(text) for text in listed]
    if len(places) < 2 or places[0] != 0 or places[-1] != _HASHES or any(a >= b for a, b in pairwise(places)):
        raise InvalidValueError("boundaries grow from 0x00000000 to 0xffffffff")
    return {"boundaries": [f"0x{place:08x}" for place in places], "numBundles": len(places) - 1}


def _place(value: Json) -> int:
    try:
        place = int(value, 16) if isinstance(value, str) and len(value) <= 10 else -1
    except ValueError:
        place = -1
    if not 0 <= place <= _HASHES:
        raise InvalidValueError(f"{excerpt(value)} is no boundary such as 0x80000000")
    return place


_CHECKS: Final[Mapping[str, Callable[[Json], Json]]] = {
    **dict.fromkeys(POLICY_FIELDS, v.mapping),
    **{
        about.key.partition(".")[0]: _per_cluster(about.check) if "." in about.key else about.check
        for about in POLICIES.values()
    },
    **dict.fromkeys(("deleted", "migrated", "dispatcherPauseOnAckStatePersistentEnabled"), v.flag),
    **dict.fromkeys(("resource_group_name", "clusterThatCanDeleteNamespace"), v.text),
    "allowed_clusters": v.words(),
    "auth_policies": grants.auth_policies,
    "backlog_quota_map": _quotas,
    "bundles": _bundles,
    "properties": v.texts,
}
