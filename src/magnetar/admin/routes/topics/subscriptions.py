"""Subscriptions of a topic (rule 11.5.1); on a partitioned topic, of all its partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body
from magnetar.admin.http.parameters import TOPIC, Flag, NameText, PathText, SubscriptionText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import SubscriptionsPort, TopicsPort
from magnetar.admin.routes.topics.cursors import parts_having
from magnetar.admin.routes.topics.partitions import check_served
from magnetar.admin.routes.topics.topics import all_of, each_part, existing
from magnetar.admin.values.coercion import flag, number, require_users, texts
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAllowedError, SubscriptionExistsError, SubscriptionNotFoundError
from magnetar.model.ids import EARLIEST, LATEST, Position
from magnetar.model.names import refusal_of_subscription
from magnetar.model.own_properties import OF_SUBSCRIPTIONS, SUBSCRIPTION_PROPERTIES_MAX
from magnetar.model.policies import Json


async def _made(creation: Awaitable[None]) -> bool:
    """Await it and return whether there was none before: some partitions may have the subscription already."""
    try:
        await creation
    except SubscriptionExistsError:
        return False
    return True


def routes(
    topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources, settings: Settings
) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(TOPIC + "/subscriptions")
    async def list_subscriptions(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        names: dict[str, None] = {}
        async for part in each_part(topics, resources, topic_name(domain, tenant, namespace, topic)):
            names.update(dict.fromkeys(await subscriptions.subscriptions_of(part)))
        return answer(list(names))

    @router.put(TOPIC + "/subscription/{subscription}")
    async def create_subscription(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        request: Request,
        replicated: Flag = False,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        start, properties = _start(await json_body(request))
        refusal = refusal_of_subscription(subscription) if settings.strictlyVerifySubscriptionName else ""
        if refusal:
            raise InvalidValueError(refusal)
        require_users(properties, OF_SUBSCRIPTIONS, SUBSCRIPTION_PROPERTIES_MAX)
        if not name.persistent:
            raise InvalidValueError("Create subscription on non-persistent topic can only be done through client")
        resources.require_namespace(name)
        count = resources.partitioned.count(name)
        check_served(name, count)
        made = await all_of(
            _made(subscriptions.create_subscription(part, subscription, start, properties, replicated=replicated))
            for part in (name.partitions(count) if count else [name])
        )
        if not any(made):
            raise SubscriptionExistsError
        return done()

    @router.delete(TOPIC + "/subscription/{subscription}")
    async def delete_subscription(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        force: Flag = False,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        having = []
        async for part in each_part(topics, resources, name):
            await subscriptions.deletion_over(part, subscription)
            if subscription in await subscriptions.subscriptions_of(part):
                having.append(part)
        if not having:
            if resources.partitioned.count(name):
                raise SubscriptionNotFoundError("Subscription not found")
            raise SubscriptionNotFoundError(f"Subscription {subscription} not found for topic {name.fqn}")
        await all_of(subscriptions.delete_subscription(part, subscription, force=force) for part in having)
        return done()

    _replication_routes(router, topics, subscriptions, resources)
    _cursor_routes(router, topics, subscriptions, resources)
    return router


def _replication_routes(
    router: RouteGroup, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    """Whether a subscription's state is to be replicated: kept and shown, as there is one cluster (rule 14.3)."""
    path = TOPIC + "/subscription/{subscription}/replicatedSubscriptionStatus"

    @router.get(path)
    async def get_replicated_subscription_status(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError("Cannot get replicated subscriptions on non-persistent topics")
        parts = each_part(topics, resources, name)
        return answer({part.fqn: subscriptions.is_replicated(part, subscription) async for part in parts})

    @router.post(path)
    async def set_replicated_subscription_status(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText,
        request: Request,
    ) -> Response:  # fmt: skip
        name = topic_name(domain, tenant, namespace, topic)
        wanted = flag(await json_body(request), "true or false")
        if not name.persistent:
            raise NotAllowedError("Cannot enable/disable replicated subscriptions on non-persistent topics")
        partitioned = resources.partitioned.count(name) > 0
        async for part in each_part(topics, resources, name):
            if subscription not in await subscriptions.subscriptions_of(part):
                where = f"Subscription {subscription} not found for topic {part.fqn}"
                raise SubscriptionNotFoundError("Topic or subscription not found" if partitioned else where)
        parts = [part async for part in each_part(topics, resources, name)]
        await all_of(subscriptions.set_replicated(part, subscription, replicated=wanted) for part in parts)
        return done()


def _cursor_routes(
    router: RouteGroup, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    path = TOPIC + "/subscription/{subscription}"

    @router.post(path + "/skip_all")
    async def skip_all(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        parts = await parts_having(topics, subscriptions, resources, name, subscription)
        await all_of(subscriptions.skip(part, subscription, None) for part in parts)
        return done()

    @router.post(path + "/skip/{count}")
    async def skip(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        count: int,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise NotAllowedError("Skip messages on a partitioned topic is not allowed")
        await subscriptions.skip(existing(topics, resources, name), subscription, count)
        return done()

    @router.post(path + "/skipUnreadable")
    async def skip_unreadable(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText
    ) -> Response:
        skipped = 0
        async for part in each_part(topics, resources, topic_name(domain, tenant, namespace, topic)):
            skipped += await subscriptions.skip_unreadable(part, subscription)
        return answer({"entriesSkipped": skipped})

    @router.post(path + "/resetcursor/{timestamp}")
    async def reset_cursor(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        timestamp: int,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        parts = [part async for part in each_part(topics, resources, name)]
        await all_of(subscriptions.reset_cursor(part, subscription, timestamp) for part in parts)
        return done()


class _Start(NamedTuple):
    position: Position
    properties: Mapping[str, str] = MappingProxyType({})


def _start(body: Json) -> _Start:
    """Parse a body that is empty, ``"latest"``, ``"earliest"``, or an object with a message id, properties or both."""
    if body is None or body == "latest":
        return _Start(LATEST)
    if body == "earliest":
        return _Start(EARLIEST)
    if not isinstance(body, dict):
        raise InvalidValueError("expected a message id with ledgerId and entryId, or latest or earliest")
    properties = texts(body.get("properties"), "properties as a JSON object of texts")
    given = body.get("ledgerId"), body.get("entryId")
    if given == (None, None):
        return _Start(LATEST, properties)
    return _Start(Position(number(given[0], '"ledgerId"'), number(given[1], '"entryId"')), properties)
