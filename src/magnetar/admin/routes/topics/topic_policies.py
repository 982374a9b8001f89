"""Policies of single topics: {topic path}/{policy} (rules 8.3 to 8.6, 11.4.8).

GET answers what is set on the topic itself, ``?applied=true`` what applies to it; ``?isGlobal=true`` reads and writes
the global policy, which the local one overrides, and with ``applied`` answers what would apply without a local one. A
partition's policies are its parent's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body, raw_body, wrong_method
from magnetar.admin.http.parameters import TOPIC, Flag, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.http.router import register_words
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.namespaces.replication import require_replicable_topic
from magnetar.admin.routes.topics.topics import parts_of
from magnetar.admin.values import offload_policies
from magnetar.admin.values import policy_values as v
from magnetar.config.setting_field import LONG_MAX
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAllowedError, PreconditionFailedError
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.model.topic_policies import DispatchRate, TopicPolicies

_DISABLED: Final = "Topic level policies is disabled, to enable the topic level policy and retry."


class _Policy(NamedTuple):
    check: v.Check
    applied: Callable[[TopicPolicies], Json] | None = None
    """What ``?applied=true`` answers; None where the parameter does not exist."""
    unset: int = 200
    """The status of GET while the topic sets nothing."""
    method: str = "POST"
    default: Json = None
    """The body of that answer, where Pulsar sends one."""
    removable: bool = True


def _count(refusal: str, applied: Callable[[TopicPolicies], Json] | None = None, unset: int = 200) -> _Policy:
    return _Policy(v.count(refusal), applied, unset)


def rate_json(rate: DispatchRate) -> Json:
    """A dispatch rate as REST shows it."""
    return {
        "dispatchThrottlingRateInMsg": rate.messages,
        "dispatchThrottlingRateInByte": rate.bytes,
        "relativeToPublishRate": rate.relative_to_publish_rate,
        "ratePeriodInSecond": rate.period_s,
    }


def _inactive(p: TopicPolicies) -> Json:
    inactive = p.inactive_topics
    return {
        "inactiveTopicDeleteMode": v.INACTIVE_MODES[inactive.caught_up_is_enough],
        "maxInactiveDurationSeconds": inactive.max_inactive_s,
        "deleteWhileInactive": inactive.delete,
    }


def _delayed(p: TopicPolicies) -> Json:
    delayed = p.delayed_delivery
    return {
        "tickTime": delayed.tick_ms, "active": delayed.active, "maxDeliveryDelayInMillis": delayed.max_delay_ms,
    }  # fmt: skip


def _subscribe_rate(p: TopicPolicies) -> Json:
    rate = p.subscribe_rate
    return {"subscribeThrottlingRatePerConsumer": rate.per_consumer, "ratePeriodInSecond": rate.period_s}


def _retention(p: TopicPolicies) -> Json:
    return {"retentionTimeInMinutes": p.retention.minutes, "retentionSizeInMB": p.retention.megabytes}


_ONE_COPY: Final[Mapping[str, Json]] = {
    **dict.fromkeys(("bookkeeperEnsemble", "bookkeeperWriteQuorum", "bookkeeperAckQuorum"), 1),
    "managedLedgerMaxMarkDeleteRate": 0.1,
}
"""What Apache Pulsar's standalone answers for a single disk."""
_QUERIED: Final = "messageTTL"
"""The only policy whose value stands in the query."""
_RATES_MAX: Final = 1 << 20
"""Characters, as JSON, of the dispatch rates of all subscriptions of a topic: each request may add one."""
_SHOWN_AS_KEPT: Final = {
    "dispatcherPauseOnAckStatePersistent": "dispatcherPauseOnAckStatePersistentEnabled",
    "persistence": "persistence",
    "replication": "replication_clusters",
}
"""Policies of no effect on one broker's topics that a topic has from its namespace, and the key there."""
_UNACKED: Final = "maxUnackedNum must be 0 or more"
POLICIES: Final[dict[str, _Policy]] = {
    "autoSubscriptionCreation": _Policy(
        v.auto_subscription, lambda p: {"allowAutoSubscriptionCreation": p.auto_subscription_creation}
    ),
    "compactionThreshold": _Policy(
        v.count("Invalid value for compactionThreshold", LONG_MAX), lambda p: p.compaction_threshold
    ),
    "deduplicationEnabled": _Policy(v.flag, lambda p: p.deduplication_enabled),
    "deduplicationSnapshotInterval": _count("interval must be 0 or more"),
    "delayedDelivery": _Policy(v.delayed, _delayed),
    "dispatchRate": _Policy(v.dispatch_rate, lambda p: rate_json(p.dispatch_rate)),
    "dispatcherPauseOnAckStatePersistent": _Policy(lambda value: True, default=False),
    "entryFilters": _Policy(v.entry_filters, lambda p: {"entryFilterNames": ""}),
    "inactiveTopicPolicies": _Policy(v.inactive, _inactive),
    "maxConsumers": _count("maxConsumers must be 0 or more", lambda p: p.max_consumers),
    "maxConsumersPerSubscription": _count("Invalid value for maxConsumersPerSubscription", unset=204),
    "maxMessageSize": _Policy(v.whole, unset=204),
    "maxProducers": _count("maxProducers must be 0 or more", lambda p: p.max_producers),
    "maxSubscriptionsPerTopic": _count("maxSubscriptionsPerTopic must be 0 or more", unset=204),
    "maxUnackedMessagesOnConsumer": _count(_UNACKED, lambda p: p.max_unacked_per_consumer),
    "maxUnackedMessagesOnSubscription": _count(_UNACKED, lambda p: p.max_unacked_per_subscription),
    "messageTTL": _count("Invalid value for message TTL", lambda p: p.message_ttl_s),
    "offloadPolicies": _Policy(v.mapping),
    "persistence": _Policy(v.persistence, lambda p: dict(_ONE_COPY)),
    "publishRate": _Policy(v.publish_rate, unset=204),
    "replication": _Policy(v.words()),
    "replicatorDispatchRate": _Policy(v.dispatch_rate, lambda p: rate_json(DispatchRate())),
    "retention": _Policy(v.retention, _retention),
    "schemaCompatibilityStrategy": _Policy(
        v.one_of(*v.STRATEGIES), lambda p: p.schema_compatibility_strategy, method="PUT"
    ),
    "schemaValidationEnforced": _Policy(v.flag, lambda p: p.schema_validation_enforced, default=False, removable=False),
    "subscribeRate": _Policy(v.subscribe_rate, _subscribe_rate),
    "subscriptionDispatchRate": _Policy(v.dispatch_rate, lambda p: rate_json(p.subscription_dispatch_rate)),
    "subscriptionTypesEnabled": _Policy(v.subscription_types, unset=204),
}
register_words("topic_policy", POLICIES)
_PATH: Final = TOPIC + "/{policy:topic_policy}"


def routes(topics: TopicsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _read_routes(router, topics, resources, settings)
    _write_routes(router, topics, resources, settings)
    _dispatch_rate_routes(router, topics, resources, settings)
    return router


def policy_topic(
    topics: TopicsPort, resources: Resources, settings: Settings, domain: str, tenant: str, namespace: str, topic: str
) -> TopicName:
    """The name of an existing topic that may have policies. Raises NotAllowedError, TopicNotFoundError."""
    name = topic_name(domain, tenant, namespace, topic)
    if not settings.topicLevelPoliciesEnabled:
        raise NotAllowedError(_DISABLED)
    parts_of(topics, resources, name)
    return name


def _read_routes(router: RouteGroup, topics: TopicsPort, resources: Resources, settings: Settings) -> None:
    @router.get(_PATH)
    async def get_policy(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, policy: str,
        applied: Flag = False, isGlobal: Flag = False,
    ) -> Response:  # fmt: skip
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        about = POLICIES[policy]
        value = resources.topic_policies.get(name, is_global=isGlobal).get(policy)
        if value is None and applied:
            value = _without_effect(resources, settings, name, policy)
        if value is None and applied and about.applied is not None:
            value = about.applied(topics.policies_of(name, local=not isGlobal))
        if value is None:
            value = about.default
        elif policy == "offloadPolicies":
            value = offload_policies.shown(value)
        return done(about.unset) if value is None else answer(value)


def _without_effect(resources: Resources, settings: Settings, name: TopicName, policy: str) -> Json:
    """What the topic's global policies or its namespace say of a policy that no :class:`TopicPolicies` has.

    None if it has: the broker resolves it.
    """
    namespace_says = resources.namespaces.policies(name.namespace)
    if policy in _SHOWN_AS_KEPT:
        above = namespace_says.get(_SHOWN_AS_KEPT[policy])
    elif policy == "replicatorDispatchRate":
        of_clusters = namespace_says.get(policy)
        above = of_clusters.get(settings.clusterName) if isinstance(of_clusters, dict) else None
    elif policy == "offloadPolicies":
        above = offload_policies.of_namespace(namespace_says)
    else:
        return None
    of_topic = resources.topic_policies.get(name, is_global=True).get(policy)
    return above if of_topic is None else of_topic


def _write_routes(router: RouteGroup, topics: TopicsPort, resources: Resources, settings: Settings) -> None:
    @router.post(_PATH)
    async def set_policy(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, policy: str, request: Request,
        isGlobal: Flag = False, messageTTL: str | None = None,
    ) -> Response:  # fmt: skip
        body: Json = await _in_query(policy, messageTTL, request) if policy == _QUERIED else await json_body(request)
        # after the body, which may take its time: the next topic of that name would have what is set on this one
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        return await _set(topics, resources, settings, "POST", name, policy, body, isGlobal)

    @router.put(_PATH)
    async def put_policy(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, policy: str, request: Request,
        isGlobal: Flag = False,
    ) -> Response:  # fmt: skip
        body = await json_body(request)
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        return await _set(topics, resources, settings, "PUT", name, policy, body, isGlobal)

    @router.delete(_PATH)
    async def remove_policy(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, policy: str, isGlobal: Flag = False
    ) -> Response:
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        if not POLICIES[policy].removable:
            return wrong_method("GET", POLICIES[policy].method)
        await resources.topic_policies.update(name, policy, None, is_global=isGlobal)
        return done()

    @router.delete(TOPIC + "/policies")
    async def remove_policies(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        await resources.topic_policies.delete(
            policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        )
        return done()


async def _in_query(policy: str, given: str | None, request: Request) -> str | None:
    """The value of a policy that is read from the query. Raises InvalidValueError for one in the body.

    Without the parameter the policy is removed, which a request with a value cannot mean.
    """
    if given is None and (await raw_body(request)).strip() not in (b"", b"null"):
        raise InvalidValueError(f"{policy} of a topic goes into the query, ?{policy}=60; the body is not read")
    return given


async def _set(
    topics: TopicsPort,
    resources: Resources,
    settings: Settings,
    method: str,
    name: TopicName,
    policy: str,
    body: Json,
    is_global: bool,
) -> Response:
    about = POLICIES[policy]
    if about.method != method:
        return wrong_method("GET", about.method, "DELETE")
    if policy == "offloadPolicies":
        value: Json = offload_policies.checked(body, settings.offloadUrl)
    else:
        value = about.check(body) if body is not None or policy == "dispatcherPauseOnAckStatePersistent" else None
    if policy == "maxMessageSize" and value is not None and not 0 <= v.whole(value) <= settings.maxMessageSize:
        raise PreconditionFailedError(
            "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
            "broker-level"
        )
    if policy == "retention":
        _check_retention(topics, name, value)
    if policy == "replication":
        require_replicable_topic(resources, settings.clusterName, name.namespace, value, is_global=is_global)
    await resources.topic_policies.update(name, policy, value, is_global=is_global)
    return done()


def _check_retention(topics: TopicsPort, name: TopicName, value: Json) -> None:
    """Raises unless retention keeps more than every quota that applies to the topic (rule 4.4.3)."""
    holds = topics.policies_of(name)
    for limit, quota in (("limitSize", holds.size_quota), ("limitTime", holds.age_quota)):
        if not v.fits({limit: quota.limit}, value):
            raise PreconditionFailedError(
                "Retention Quota must exceed configured backlog quota for topic. "
                "Please increase retention quota and retry"
            )


def _dispatch_rate_routes(router: RouteGroup, topics: TopicsPort, resources: Resources, settings: Settings) -> None:
    """Routes of dispatch rates of single subscriptions, which are one object by name."""
    path = TOPIC + "/{subscription}/dispatchRate"
    stored = "subscriptionDispatchRates"

    def rates_of(name: TopicName, *, is_global: bool) -> JsonObject:
        found = resources.topic_policies.get(name, is_global=is_global).get(stored)
        return found if isinstance(found, dict) else {}

    async def store(name: TopicName, subscription: str, value: Json, *, is_global: bool) -> Response:
        def changed(rates: Json) -> Json:
            after = v.with_member(rates, subscription, value)
            if value is not None and len(json.dumps(after)) > _RATES_MAX:
                raise PreconditionFailedError(f"the rates of subscriptions take {_RATES_MAX} characters at most")
            return after

        await resources.topic_policies.change(name, stored, changed, is_global=is_global)
        return done()

    @router.get(path)
    async def get_dispatch_rate(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: NameText,
        applied: Flag = False, isGlobal: Flag = False,
    ) -> Response:  # fmt: skip
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        value = rates_of(name, is_global=isGlobal).get(subscription)
        if value is None and applied:
            value = rate_json(topics.policies_of(name, local=not isGlobal).dispatch_rate_of(subscription))
        return done(200) if value is None else answer(value)

    @router.post(path)
    async def set_dispatch_rate(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: NameText,
        request: Request, isGlobal: Flag = False,
    ) -> Response:  # fmt: skip
        body = await json_body(request)
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        value = None if body is None else v.dispatch_rate(body)
        return await store(name, subscription, value, is_global=isGlobal)

    @router.delete(path)
    async def remove_dispatch_rate(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: NameText,
        isGlobal: Flag = False,
    ) -> Response:  # fmt: skip
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        return await store(name, subscription, None, is_global=isGlobal)
