"""Topics without partitions, and lists of topics (rules 11.4.1, 11.4.2, 4.7.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body, listed, text_map_body
from magnetar.admin.http.parameters import TOPIC, TOPICS, Flag, NameText, PathText, namespace_name, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import MessagesPort, TopicsPort
from magnetar.admin.routes.half_done import half_done
from magnetar.admin.routes.namespaces.bundles import ring_of
from magnetar.admin.values.coercion import require_users
from magnetar.admin.values.policy_values import PROPERTIES_MAX, words
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    ConflictError,
    InvalidValueError,
    NotAllowedError,
    NotAvailableError,
    PreconditionFailedError,
    TopicNotFoundError,
)
from magnetar.model.names import Domain, TopicName
from magnetar.model.own_properties import OF_TOPICS
from magnetar.model.system_topics import is_change_events, is_reserved, is_system_topic
from magnetar.runtime.tasks import in_turns

_SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"
PARTS_PER_TURN: Final = 20
"""Partitions that are looked at without giving the loop a turn: a few milliseconds, if they are to be loaded."""

T = TypeVar("T")

_DOMAINS: Final[Mapping[str, Domain]] = {"persistent": "persistent", "non-persistent": "non-persistent"}


def existing(topics: TopicsPort, resources: Resources, topic: TopicName) -> TopicName:
    """Return ``topic`` if it exists as a plain topic or a partition. Raises TopicNotFoundError."""
    if topics.topic_exists(topic):
        return topic
    resources.require_namespace(topic)
    if topic.is_partition and resources.partitioned.count(topic.parent):
        raise TopicNotFoundError("Topic partitions were not yet created")
    raise TopicNotFoundError(f"Topic {topic.fqn} not found")


def parts_of(topics: TopicsPort, resources: Resources, topic: TopicName) -> list[TopicName]:
    """Return the topic itself, or its existing partitions if it has any. Raises TopicNotFoundError."""
    count = resources.partitioned.count(topic)
    if count:
        return topics.partitions_of(topic)
    return [existing(topics, resources, topic)]


async def each_part(topics: TopicsPort, resources: Resources, topic: TopicName) -> AsyncIterator[TopicName]:
    """Yield what :func:`parts_of` returns, some in each turn of the loop: there may be ten thousand, to be loaded."""
    async for part in in_turns(parts_of(topics, resources, topic), PARTS_PER_TURN):
        yield part


async def all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Await ``calls``, some at a time, so that what they write goes to the disk together; the answers in their order.

    Raises the first error when those that were begun have ended, and begins no more; that of a disk which refuses a
    call says how many were made.
    """
    answers: list[T] = []
    rest = iter(calls)
    with half_done(lambda: f"it is done for {len(answers)} partitions or subscriptions" if answers else ""):
        while some := list(islice(rest, PARTS_PER_TURN)):
            ended = await asyncio.gather(*some, return_exceptions=True)
            answers += [one for one in ended if not isinstance(one, BaseException)]
            for one in ended:
                if isinstance(one, BaseException):
                    raise one
    return answers


def routes(topics: TopicsPort, messages: MessagesPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(TOPICS)
    async def list_topics(
        domain: PathText, tenant: PathText, namespace: PathText, includeSystemTopic: Flag = False,
        bundle: str | None = None,
    ) -> Response:  # fmt: skip
        name = namespace_name(tenant, namespace)
        resources.namespaces.policies(name)
        pieces: Iterable[Sequence[str]] = topics.names_of(name, [_DOMAINS[domain]], system=includeSystemTopic)
        if bundle is not None:
            # a bundle that does not exist has no topics, as in Pulsar
            ring = ring_of(resources, name)
            pieces = ([one for one in piece if bundle == ring.of_topic(TopicName.stored(one))] for piece in pieces)
        return listed(pieces)

    @router.put(TOPIC)
    async def create_topic(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        properties = await text_map_body(request)
        resources.require_namespace(name)
        check_properties(properties)
        _check_creatable(topics, resources, name)
        await topics.create_topic(name, properties)
        return done()

    @router.delete(TOPIC)
    async def delete_topic(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, force: Flag = False
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not topics.topic_exists(name) and resources.partitioned.count(name):
            raise ConflictError(
                f"{name.fqn} is a partitioned topic, instead of calling delete topic, "
                "please call delete-partitioned-topic."
            )
        if not name.persistent and not topics.topic_exists(name):
            resources.require_namespace(name)
            return done()  # as Apache Pulsar has it (rule 13.11)
        existing(topics, resources, name)
        clients = 0 if force else topics.clients_of(name)
        if clients:
            raise PreconditionFailedError(f"Topic has {clients} connected producers/consumers")
        await topics.delete_topic(name, force=force)
        return done()

    @router.put(TOPIC + "/unload")
    async def unload_topic(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        async for part in each_part(topics, resources, topic_name(domain, tenant, namespace, topic)):
            await topics.unload_topic(part)
        return done()

    _message_id_routes(router, topics, messages, resources)
    _shadow_routes(router, topics, resources)
    return router


def _shadow_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    """Shadow topics: none can be set, so there never are any."""
    path = TOPIC + "/shadowTopics"

    @router.get(path)
    async def get_shadow_topics(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        parts_of(topics, resources, topic_name(domain, tenant, namespace, topic))
        return done(200)

    @router.put(path)
    async def set_shadow_topics(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        given = words()(await json_body(request) or [])
        parts_of(topics, resources, name)
        if not name.persistent:
            raise PreconditionFailedError("Only persistent source topic is supported with shadow topics.")
        if not given:
            raise PreconditionFailedError("Cannot specify empty shadow topics, please use remove command instead.")
        raise NotAvailableError("shadow topics are not available yet in magnetar: one topic owns each message")

    @router.delete(path)
    async def remove_shadow_topics(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText
    ) -> Response:
        parts_of(topics, resources, topic_name(domain, tenant, namespace, topic))
        return done()


def _message_id_routes(router: RouteGroup, topics: TopicsPort, messages: MessagesPort, resources: Resources) -> None:
    @router.get(TOPIC + "/lastMessageId")
    async def last_message_id(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        _check_stored(resources, name, "GetLastMessageId")
        return answer(await messages.last_message_id(existing(topics, resources, name)))

    @router.get(TOPIC + "/messageid/{timestamp}")
    async def message_id_since(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, timestamp: int
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        _check_stored(resources, name, "Get message ID by timestamp")
        if resources.partitioned.count(name):
            raise NotAllowedError(
                "Get message ID by timestamp on a partitioned topic is not allowed, please try do it on specific topic "
                "partition"
            )
        return answer(await messages.message_id_since(existing(topics, resources, name), timestamp))


def _check_stored(resources: Resources, topic: TopicName, what: str) -> None:
    resources.require_namespace(topic)
    if not topic.persistent:
        raise NotAllowedError(f"{what} on a non-persistent topic is not allowed")


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse the broker's own names, too many bytes, and shadow topics, which would stay empty here.

    Raises InvalidValueError, PreconditionFailedError, NotAvailableError.
    """
    require_users(properties, OF_TOPICS, PROPERTIES_MAX)
    if _SHADOW_SOURCE in properties:
        raise NotAvailableError(
            f"shadow topics are not available yet in magnetar: property {_SHADOW_SOURCE} is refused"
        )


def check_not_system(topic: TopicName) -> None:
    """Refuse system topics, which only the broker makes (rule 8.2). Raises InvalidValueError or ConflictError."""
    if is_reserved(topic):
        raise InvalidValueError("Cannot create topic in system topic format!")
    if is_system_topic(topic):
        raise ConflictError(f"{topic.fqn} is a system topic, which only the broker makes")


def _check_creatable(topics: TopicsPort, resources: Resources, topic: TopicName) -> None:
    if not is_change_events(topic):
        check_not_system(topic)
    if topic.is_partition and topic.partition_index >= (count := resources.partitioned.count(topic.parent)):
        if not count:
            raise PreconditionFailedError(
                f'Can\'t create topic {topic.local_name} with "-partition-" followed by numeric value '
                f"if there isn't a partitioned topic {topic.parent.local_name} created."
            )
        raise PreconditionFailedError(
            f"Can't create topic {topic.local_name}: its partitioned topic has {count} partitions, numbered from 0"
        )
    if topics.topic_exists(topic) or resources.partitioned.count(topic):
        raise ConflictError("This topic already exists")
