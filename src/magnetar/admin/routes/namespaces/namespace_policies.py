"""Policies of namespaces: /admin/v2/namespaces/{tenant}/{namespace}/{policy} (rules 11.3.4, 11.3.5).

One table describes them, and one handler per method serves them. A policy that has no effect here is stored and shown
like the others, because tools that set up a namespace read back what they wrote.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body, raw_body, wrong_method
from magnetar.admin.http.parameters import NAMESPACE, Flag, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.http.router import register_words
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.namespaces.replication import require_replicable
from magnetar.admin.values import coercion
from magnetar.admin.values import policy_values as v
from magnetar.config.setting_field import LONG_MAX
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import NotFoundError, PreconditionFailedError
from magnetar.model.names import NamespaceName
from magnetar.model.policies import Json, JsonObject


class _Policy(NamedTuple):
    key: str
    """Its member of the namespace's policies; ``key.cluster`` holds one value for each cluster."""
    check: v.Check
    method: str = "POST"
    unset: Json = None
    """What GET answers while it is not set; for None, 200 without a body."""
    removable: bool = True
    status: int = 204
    remove: str = ""
    """The name of the route that removes it, where that is another one."""


def _count(key: str, name: str, method: str = "POST", unset: Json = None) -> _Policy:
    return _Policy(key, v.count(f"{name} must be 0 or more"), method=method, unset=unset)


POLICIES: Final[dict[str, _Policy]] = {
    "antiAffinity": _Policy("antiAffinityGroup", v.group),
    "autoSubscriptionCreation": _Policy("autoSubscriptionCreationOverride", v.auto_subscription),
    "autoTopicCreation": _Policy("autoTopicCreationOverride", v.auto_topic_creation),
    "compactionThreshold": _Policy(
        "compaction_threshold", v.count("compactionThreshold must be 0 or more", LONG_MAX), method="PUT"
    ),
    "deduplication": _Policy("deduplicationEnabled", v.flag),
    "deduplicationSnapshotInterval": _Policy(
        "deduplicationSnapshotIntervalSeconds", v.count("interval must be greater than or equal to 0"), removable=False
    ),
    "delayedDelivery": _Policy("delayed_delivery_policies", v.delayed),
    "dispatchRate": _Policy("topicDispatchRate.cluster", v.dispatch_rate),
    "dispatcherPauseOnAckStatePersistent": _Policy(
        "dispatcherPauseOnAckStatePersistentEnabled", lambda value: True, unset=False
    ),
    "encryptionRequired": _Policy("encryption_required", v.flag, unset=False, removable=False),
    "entryFilters": _Policy("entryFilters", v.entry_filters),
    "inactiveTopicPolicies": _Policy("inactive_topic_policies", v.inactive),
    "isAllowAutoUpdateSchema": _Policy("is_allow_auto_update_schema", v.flag, unset=True, removable=False),
    "maxConsumersPerSubscription": _count("max_consumers_per_subscription", "maxConsumersPerSubscription"),
    "maxConsumersPerTopic": _count("max_consumers_per_topic", "maxConsumersPerTopic"),
    "maxProducersPerTopic": _count("max_producers_per_topic", "maxProducersPerTopic"),
    "maxSubscriptionsPerTopic": _count("max_subscriptions_per_topic", "maxSubscriptionsPerTopic"),
    "maxTopicsPerNamespace": _count("max_topics_per_namespace", "maxTopicsPerNamespace", unset=0),
    "maxUnackedMessagesPerConsumer": _count("max_unacked_messages_per_consumer", "maxUnackedMessagesPerConsumer"),
    "maxUnackedMessagesPerSubscription": _count(
        "max_unacked_messages_per_subscription", "maxUnackedMessagesPerSubscription"
    ),
    "messageTTL": _Policy(
        "message_ttl_in_seconds", v.count("Invalid value for message TTL, message TTL must >= 0")
    ),
    "offloadDeletionLagMs": _Policy("offload_deletion_lag_ms", v.whole, method="PUT"),
    "offloadThreshold": _Policy("offload_threshold", v.whole, method="PUT", unset=-1, removable=False),
    "offloadThresholdInSeconds": _Policy(
        "offload_threshold_in_seconds", v.offload_seconds, method="PUT", unset=-1, removable=False
    ),
    "persistence": _Policy("persistence", v.persistence),
    "publishRate": _Policy("publishMaxMessageRate.cluster", v.publish_rate),
    "replication": _Policy("replication_clusters", v.words(), removable=False, status=200),
    "replicatorDispatchRate": _Policy("replicatorDispatchRate.cluster", v.dispatch_rate),
    "retention": _Policy("retention_policies", v.retention),
    "schemaAutoUpdateCompatibilityStrategy": _Policy(
        "schema_auto_update_compatibility_strategy", v.one_of(*v.AUTO_UPDATE_STRATEGIES), method="PUT", removable=False
    ),
    "schemaCompatibilityStrategy": _Policy(
        "schema_compatibility_strategy", v.one_of(*v.STRATEGIES), method="PUT", unset="UNDEFINED", removable=False
    ),
    "schemaValidationEnforced": _Policy("schema_validation_enforced", v.flag, unset=False, removable=False),
    "subscribeRate": _Policy("clusterSubscribeRate.cluster", v.subscribe_rate),
    "subscriptionAuthMode": _Policy(
        "subscription_auth_mode", v.one_of("None", "Prefix"), unset="None", removable=False
    ),
    "subscriptionDispatchRate": _Policy("subscriptionDispatchRate.cluster", v.dispatch_rate),
    "subscriptionExpirationTime": _Policy(
        "subscription_expiration_time_minutes", v.count("Invalid value for subscription expiration time")
    ),
    "subscriptionTypesEnabled": _Policy("subscription_types_enabled", v.subscription_types, unset=[]),
}  # fmt: skip
_ADDED_TO: Final = "schemaValidationEnforced"
"""The only policy with ``?applied=true``: a namespace can only add to the broker's setting."""
_FROM_BROKER: Final = "isAllowAutoUpdateSchema"
"""The policy for which GET answers the broker's setting while the namespace sets nothing."""
_OTHER_WORDS: Final = frozenset(
    ((False, "retention"), (True, "replicatorDispatchRate"), (True, "dispatcherPauseOnAckStatePersistent"))
)
"""Whether it is read, and the policy: where Apache Pulsar misses a namespace's policies, not the namespace."""
_ALSO_NO_CONTENT: Final = frozenset(("antiAffinity", "schemaAutoUpdateCompatibilityStrategy"))
"""Policies for which GET answers 204 while they are not set."""

_PROPERTIES: Final = "properties"
"""The key of a namespace's properties among its policies."""

register_words("namespace_policy", POLICIES)
_PATH: Final = NAMESPACE + "/{policy:namespace_policy}"


def routes(topics: TopicsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _read_routes(router, resources, settings)
    _write_routes(router, topics, resources, settings)
    _property_routes(router, resources)
    return router


def _read_routes(router: RouteGroup, resources: Resources, settings: Settings) -> None:
    @router.get(_PATH)
    async def get_policy(tenant: PathText, namespace: PathText, policy: str, applied: Flag = False) -> Response:
        about = POLICIES[policy]
        policies = _existing(resources, "GET", namespace_name(tenant, namespace), policy)
        value = _stored(policies, about.key, settings.clusterName)
        if policy == _ADDED_TO and applied:
            value = value is True or settings.isSchemaValidationEnforced
        if policy == "antiAffinity" and isinstance(value, str):
            return Response(value, media_type="application/json")
        if value is None:
            value = settings.isAllowAutoUpdateSchemaEnabled if policy == _FROM_BROKER else about.unset
        if value is None:
            return done(204 if policy in _ALSO_NO_CONTENT else 200)
        return answer(value)


def _write_routes(router: RouteGroup, topics: TopicsPort, resources: Resources, settings: Settings) -> None:
    @router.post(_PATH)
    async def set_policy(tenant: PathText, namespace: PathText, policy: str, request: Request) -> Response:
        return await _set(topics, resources, settings, "POST", namespace_name(tenant, namespace), policy, request)

    @router.put(_PATH)
    async def put_policy(tenant: PathText, namespace: PathText, policy: str, request: Request) -> Response:
        return await _set(topics, resources, settings, "PUT", namespace_name(tenant, namespace), policy, request)

    @router.delete(_PATH)
    async def remove_policy(tenant: PathText, namespace: PathText, policy: str) -> Response:
        if not POLICIES[policy].removable:
            return wrong_method("GET", POLICIES[policy].method)
        name = namespace_name(tenant, namespace)
        _existing(resources, "DELETE", name, policy)
        await _store(resources, settings, name, POLICIES[policy].key, None)
        await topics.policies_in_force()
        return done()


async def _set(
    topics: TopicsPort,
    resources: Resources,
    settings: Settings,
    method: str,
    name: NamespaceName,
    policy: str,
    request: Request,
) -> Response:
    about = POLICIES[policy]
    if about.method != method:
        return wrong_method("GET", about.method)
    if policy == "antiAffinity":
        # Java's client sends the bare name, others send it in quotes; Pulsar keeps and shows what was sent
        body: Json = (await raw_body(request)).decode(errors="replace")
    else:
        body = await json_body(request)
    _existing(resources, method, name, policy)
    value = about.check(body) if body is not None or policy == "dispatcherPauseOnAckStatePersistent" else None
    if policy == "replication":
        require_replicable(resources, settings.clusterName, name, value)
    if policy == "autoTopicCreation":
        _check_partitions(resources, value)
    await _store(resources, settings, name, about.key, value)
    await topics.policies_in_force()
    return done(about.status)


def _existing(resources: Resources, method: str, name: NamespaceName, policy: str) -> JsonObject:
    """The namespace's policies. Raises NotFoundError, in the words that Apache Pulsar 4.0.8 has for this route."""
    if (method == "GET", policy) in _OTHER_WORDS and not resources.namespaces.exists(name):
        raise NotFoundError("Namespace policies does not exist")
    return resources.namespaces.policies(name)


def _stored(policies: JsonObject, key: str, cluster: str) -> Json:
    name, _, per_cluster = key.partition(".")
    value = policies.get(name)
    if per_cluster:
        return value.get(cluster) if isinstance(value, dict) else None
    return value


async def _store(resources: Resources, settings: Settings, name: NamespaceName, key: str, value: Json) -> None:
    field, _, per_cluster = key.partition(".")

    def changed(policies: JsonObject) -> JsonObject:
        if field == "retention_policies":
            _check_retention(policies, value)
        if per_cluster:
            return {field: v.with_member(policies.get(field), settings.clusterName, value) or {}}
        return {field: value}

    await resources.namespaces.change(name, changed)


def _check_partitions(resources: Resources, value: Json) -> None:
    """Raise NotAcceptableError if topics were created with more partitions than one may have."""
    if isinstance(value, dict) and value["allowAutoTopicCreation"] and value.get("topicType") == "partitioned":
        resources.partitioned.check_maximum(v.whole(value["defaultNumPartitions"]))


# rules between policies ----------------------------------------------------------------------------------------------


def _check_retention(policies: JsonObject, value: Json) -> None:
    quotas = policies.get("backlog_quota_map")
    if isinstance(quotas, dict) and not v.fits(quotas.get("destination_storage"), value):
        raise PreconditionFailedError("Retention Quota must exceed configured backlog quota for namespace.")


def _properties(policies: JsonObject) -> JsonObject:
    found = policies.get(_PROPERTIES)
    return found if isinstance(found, dict) else {}


def _property_routes(router: RouteGroup, resources: Resources) -> None:
    path = NAMESPACE + "/properties"

    def properties_of(name: NamespaceName) -> JsonObject:
        return _properties(resources.namespaces.policies(name))

    async def add(name: NamespaceName, properties: dict[str, str]) -> Response:
        def changed(policies: JsonObject) -> JsonObject:
            both = {**_properties(policies), **properties}
            coercion.require_users({key: str(value) for key, value in both.items()}, (), v.PROPERTIES_MAX)
            return {_PROPERTIES: both}

        await resources.namespaces.change(name, changed)
        return done()

    @router.get(path)
    async def get_properties(tenant: PathText, namespace: PathText) -> Response:
        return answer(properties_of(namespace_name(tenant, namespace)))

    @router.put(path)
    async def set_properties(tenant: PathText, namespace: PathText, request: Request) -> Response:
        name = namespace_name(tenant, namespace)
        return await add(name, coercion.texts(await json_body(request)))

    @router.delete(path)
    async def clear_properties(tenant: PathText, namespace: PathText) -> Response:
        await resources.namespaces.update(namespace_name(tenant, namespace), properties={})
        return done()

    @router.get(NAMESPACE + "/property/{key}")
    async def get_property(tenant: PathText, namespace: PathText, key: PathText) -> Response:
        found = properties_of(namespace_name(tenant, namespace)).get(key)
        return done(200) if found is None else Response(str(found), media_type="application/json")

    @router.put(NAMESPACE + "/property/{key}/{value}")
    async def set_property(tenant: PathText, namespace: PathText, key: PathText, value: PathText) -> Response:
        name = namespace_name(tenant, namespace)
        return await add(name, {key: value})

    @router.delete(NAMESPACE + "/property/{key}")
    async def remove_property(tenant: PathText, namespace: PathText, key: PathText) -> Response:
        name = namespace_name(tenant, namespace)
        found = properties_of(name).get(key)
        await resources.namespaces.change(
            name, lambda policies: {_PROPERTIES: v.with_member(_properties(policies), key, None) or {}}
        )
        return done(200) if found is None else Response(str(found), media_type="application/json")
