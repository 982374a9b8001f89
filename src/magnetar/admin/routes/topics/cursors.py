"""Expiry of messages, resets to a message, and properties of subscriptions (rules 11.5.2, 11.5.5, 11.5.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import answer, done, json_body, text_map_body
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, SubscriptionText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import SubscriptionsPort, TopicsPort
from magnetar.admin.routes.topics.topics import all_of, each_part, existing, parts_of
from magnetar.admin.values.coercion import flag, number, require_users
from magnetar.admin.values.json_document import excerpt
from magnetar.authorization.access import TopicAccess
from magnetar.authorization.operations import TopicOperation
from magnetar.metadata.resources import Resources
from magnetar.model.errors import ConflictError, InvalidValueError, NotAllowedError, SubscriptionNotFoundError
from magnetar.model.ids import EARLIEST, LATEST, Position
from magnetar.model.names import TopicName
from magnetar.model.own_properties import OF_SUBSCRIPTIONS, SUBSCRIPTION_PROPERTIES_MAX
from magnetar.model.policies import Json
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION

_PATH = TOPIC + "/subscription/{subscription}"


class _Target(NamedTuple):
    position: Position
    excluded: bool = False
    batch_index: int = -1
    """A message of the batch at that position; -1: the whole entry."""


def routes(
    topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources, permissions: Permissions
) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _expiry_routes(router, topics, subscriptions, resources)
    _expire_all_route(router, topics, subscriptions, resources, permissions)
    _reset_routes(router, topics, subscriptions, resources)
    _property_routes(router, topics, subscriptions, resources)
    return router


async def _expire_each(subscriptions: SubscriptionsPort, each: Iterable[tuple[TopicName, str]], seconds: int) -> None:
    """Expire on all of them. Raises ConflictError, naming the first that had nothing to look at, when all are done."""
    members = list(each)
    looked_at = await all_of(subscriptions.expire(*one, seconds) for one in members)
    idle = [one for one, some in zip(members, looked_at, strict=True) if not some]
    if idle:
        topic, subscription = idle[0]
        raise ConflictError(
            f"Expire message by timestamp not issued on topic {topic.fqn} for subscription {subscription} due to "
            "ongoing message expiration not finished or subscription almost catch  up. If it's performed on a "
            "partitioned topic operation might succeeded on other partitions, please check stats of individual "
            "partition."
        )


async def parts_having(
    topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources, name: TopicName, subscription: str
) -> list[TopicName]:
    """The topic, or its partitions. Raises SubscriptionNotFoundError if one of them lacks the subscription."""
    parts = []
    async for part in each_part(topics, resources, name):
        if subscription not in await subscriptions.subscriptions_of(part):
            raise SubscriptionNotFoundError(f"Subscription {subscription} not found for topic {name.fqn}")
        parts.append(part)
    return parts


def _expiry_routes(
    router: RouteGroup, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    @router.post(_PATH + "/expireMessages/{seconds}")
    async def expire(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        seconds: int,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        parts_of(topics, resources, name)
        _stored(name, "Expire messages")
        parts = await parts_having(topics, subscriptions, resources, name, subscription)
        await _expire_each(subscriptions, ((part, subscription) for part in parts), seconds)
        return done()

    @router.post(_PATH + "/expireMessages")
    async def expire_until(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        request: Request,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise NotAllowedError("Expire message at position is not supported for partitioned-topic")
        target = _target(await json_body(request))
        _stored(existing(topics, resources, name), "Expire messages")
        if not await subscriptions.expire_until(name, subscription, target.position, target.excluded):
            raise ConflictError(
                f"Expire message by position not issued on topic {name.fqn} for subscription {subscription} due to "
                "ongoing message expiration not finished or invalid message position provided."
            )
        return done()


def _expire_all_route(
    router: RouteGroup,
    topics: TopicsPort,
    subscriptions: SubscriptionsPort,
    resources: Resources,
    permissions: Permissions,
) -> None:
    @router.post(TOPIC + "/all_subscription/expireMessages/{seconds}")
    async def expire_all(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, seconds: int, request: Request
    ) -> Response:
        what = "Expire messages for all subscriptions"
        name = topic_name(domain, tenant, namespace, topic)
        parts_of(topics, resources, name)
        _stored(name, what)
        # the cursor of compaction is no user's: it is none of "all"
        members = [
            (part, subscription)
            async for part in each_part(topics, resources, name)
            for subscription in await subscriptions.subscriptions_of(part)
            if subscription != COMPACTION_SUBSCRIPTION
        ]
        expiring = TopicOperation.EXPIRE_MESSAGES
        permissions.require(request, *(TopicAccess(part, expiring, subscription) for part, subscription in members))
        await _expire_each(subscriptions, members, seconds)
        return done()


def _reset_routes(
    router: RouteGroup, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    @router.post(_PATH + "/resetcursor")
    async def reset_cursor(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        request: Request,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise NotAllowedError("Reset-cursor at position is not allowed for partitioned-topic")
        target = _target(await json_body(request))
        _stored(existing(topics, resources, name), "Reset-cursor at position")
        await subscriptions.reset_to(name, subscription, *target)
        return done()


def _property_routes(
    router: RouteGroup, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    @router.get(_PATH + "/properties")
    async def get_properties(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText
    ) -> Response:
        found: dict[str, str] = {}
        async for part in each_part(topics, resources, topic_name(domain, tenant, namespace, topic)):
            found.update(subscriptions.subscription_properties(part, subscription))
        return answer(found)

    @router.put(_PATH + "/properties")
    async def set_properties(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        request: Request,
    ) -> Response:
        properties = await text_map_body(request)
        require_users(properties, OF_SUBSCRIPTIONS, SUBSCRIPTION_PROPERTIES_MAX)
        name = topic_name(domain, tenant, namespace, topic)
        parts = [part async for part in each_part(topics, resources, name)]
        await all_of(subscriptions.set_subscription_properties(part, subscription, properties) for part in parts)
        return done()


def _stored(topic: TopicName, what: str) -> None:
    """Do nothing if ``topic`` is persistent. Raises NotAllowedError with Pulsar's text."""
    if not topic.persistent:
        raise NotAllowedError(f"{what} on a non-persistent topic is not allowed")


def _target(body: Json) -> _Target:
    """Parse a message id, which may have ``batchIndex`` and ``isExcluded``, or ``"earliest"`` or ``"latest"``.

    Raises InvalidValueError also if it is missing: "latest" acknowledges a whole backlog, so it has to be said.
    """
    if body == "earliest":
        return _Target(EARLIEST)
    if body == "latest":
        return _Target(LATEST)
    if not isinstance(body, dict):
        found = "the body is empty" if body is None else f"got {excerpt(body)}"
        raise InvalidValueError(
            'expected a message id as the body, {"ledgerId": ..., "entryId": ...}, or "earliest" or "latest"; ' + found
        )
    position = Position(number(body.get("ledgerId"), '"ledgerId"'), number(body.get("entryId"), '"entryId"'))
    excluded = body.get("isExcluded", body.get("excluded"))
    batch_index = number(body.get("batchIndex", -1), '"batchIndex"')
    return _Target(position, excluded is not None and flag(excluded), batch_index)
