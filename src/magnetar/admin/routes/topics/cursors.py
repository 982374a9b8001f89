"""Expiry of messages, resets to a message, and properties of subscriptions (rules 11.5.2, 11.5.5, 11.5.6)."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import answer, done, json_body, text_map_body
from magnetar.admin.http.parameters import TOPIC, PathText, topic_name
from magnetar.admin.ports import SubscriptionsPort, TopicsPort
from magnetar.admin.routes.topics.topics import existing, parts_of
from magnetar.admin.values.coercion import flag, number
from magnetar.authorization.access import TopicAccess
from magnetar.authorization.operations import TopicOperation
from magnetar.metadata.resources import Resources
from magnetar.model.errors import ConflictError, NotAllowedError
from magnetar.model.ids import EARLIEST, LATEST, Position
from magnetar.model.names import TopicName
from magnetar.model.policies import Json
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION

_PATH = TOPIC + "/subscription/{subscription}"


class _Target(NamedTuple):
    position: Position
    excluded: bool


def routes(
    topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources, permissions: Permissions
) -> APIRouter:
    """Build the routes of this group."""
    router = APIRouter(tags=["subscriptions"])
    _expiry_routes(router, topics, subscriptions, resources)
    _expire_all_route(router, topics, subscriptions, resources, permissions)
    _reset_routes(router, topics, subscriptions, resources)
    _property_routes(router, topics, subscriptions, resources)
    return router


def _nothing_to_expire(topic: TopicName, subscription: str) -> ConflictError:
    return ConflictError(
        f"Expire message by timestamp not issued on topic {topic.fqn} for subscription {subscription} due to ongoing "
        "message expiration not finished or subscription almost catch  up. If it's performed on a partitioned topic "
        "operation might succeeded on other partitions, please check stats of individual partition."
    )


def _expiry_routes(
    router: APIRouter, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    @router.post(_PATH + "/expireMessages/{seconds}")
    async def expire(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText, subscription: PathText, seconds: int
    ) -> Response:
        for part in _stored(
            parts_of(topics, resources, topic_name(domain, tenant, namespace, topic)), "Expire messages"
        ):
            if not await subscriptions.expire(part, subscription, seconds):
                raise _nothing_to_expire(part, subscription)
        return done()

    @router.post(_PATH + "/expireMessages")
    async def expire_until(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: PathText,
        subscription: PathText,
        request: Request,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise NotAllowedError("Expire message at position is not supported for partitioned-topic")
        target = _target(await json_body(request))
        _stored([existing(topics, resources, name)], "Expire messages")
        if not await subscriptions.expire_until(name, subscription, *target):
            raise _nothing_to_expire(name, subscription)
        return done()


def _expire_all_route(
    router: APIRouter,
    topics: TopicsPort,
    subscriptions: SubscriptionsPort,
    resources: Resources,
    permissions: Permissions,
) -> None:
    @router.post(TOPIC + "/all_subscription/expireMessages/{seconds}")
    async def expire_all(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText, seconds: int, request: Request
    ) -> Response:
        what = "Expire messages for all subscriptions"
        parts = _stored(parts_of(topics, resources, topic_name(domain, tenant, namespace, topic)), what)
        members = [
            TopicAccess(part, TopicOperation.EXPIRE_MESSAGES, name)
            for part in parts
            for name in await subscriptions.subscriptions_of(part)
        ]
        # the cursor of compaction is no user's: for those who may not touch it, it is none of "all"
        members = [
            one for one in members if one.subscription != COMPACTION_SUBSCRIPTION or permissions.allows(request, one)
        ]
        permissions.require(request, *members)
        for part, name in ((one.topic, one.subscription or "") for one in members):
            if not await subscriptions.expire(part, name, seconds):
                raise _nothing_to_expire(part, name)
        return done()


def _reset_routes(
    router: APIRouter, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    @router.post(_PATH + "/resetcursor")
    async def reset_cursor(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: PathText,
        subscription: PathText,
        request: Request,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise NotAllowedError("Reset-cursor at position is not allowed for partitioned-topic")
        target = _target(await json_body(request))
        _stored([existing(topics, resources, name)], "Reset-cursor at position")
        await subscriptions.reset_to(name, subscription, *target)
        return done()


def _property_routes(
    router: APIRouter, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    @router.get(_PATH + "/properties")
    async def get_properties(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText, subscription: PathText
    ) -> Response:
        found: dict[str, str] = {}
        for part in parts_of(topics, resources, topic_name(domain, tenant, namespace, topic)):
            found.update(subscriptions.subscription_properties(part, subscription))
        return answer(found)

    @router.put(_PATH + "/properties")
    async def set_properties(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: PathText,
        subscription: PathText,
        request: Request,
    ) -> Response:
        properties = await text_map_body(request)
        for part in parts_of(topics, resources, topic_name(domain, tenant, namespace, topic)):
            await subscriptions.set_subscription_properties(part, subscription, properties)
        return done()


def _stored(topics: list[TopicName], what: str) -> list[TopicName]:
    """Return ``topics`` if they are persistent. Raises NotAllowedError with Pulsar's text."""
    if any(not topic.persistent for topic in topics):
        raise NotAllowedError(f"{what} on a non-persistent topic is not allowed")
    return topics


def _target(body: Json) -> _Target:
    """Parse a message id, which may have ``isExcluded``, or ``"earliest"`` or ``"latest"``."""
    if body == "earliest":
        return _Target(EARLIEST, False)
    if body in (None, "latest"):
        return _Target(LATEST, False)
    given = body if isinstance(body, dict) else {}
    position = Position(number(given.get("ledgerId"), '"ledgerId"'), number(given.get("entryId"), '"entryId"'))
    excluded = given.get("isExcluded", given.get("excluded"))
    return _Target(position, excluded is not None and flag(excluded))
