"""Ends and properties of topics, and the namespace's operations on all of them (SEMANTICS 4.7, 11.3.8, 11.4.6, 11.4.9).

On a partitioned topic an operation goes to all its partitions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import pairwise
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, text_map_body
from magnetar.admin.http.parameters import NAMESPACE, TOPIC, PathText, namespace_name, topic_name
from magnetar.admin.ports import SubscriptionsPort, TopicOperationsPort, TopicsPort
from magnetar.admin.routes.lookups import bundle_of
from magnetar.admin.routes.topics.topics import check_no_shadow, existing, parts_of
from magnetar.compaction.compaction_cursor import COMPACTION_SUBSCRIPTION
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    NotAcceptableError,
    NotAllowedError,
    PreconditionFailedError,
    TopicNotFoundError,
)
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json
from magnetar.runtime.tasks import in_turns

_TOPICS_PER_TURN: Final = 20


def routes(
    topics: TopicsPort, operations: TopicOperationsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(tags=["topics"])
    _ends(router, topics, operations, resources)
    _properties(router, topics, operations, resources)
    _of_namespaces(router, topics, subscriptions, resources)
    return router


def _ends(router: APIRouter, topics: TopicsPort, operations: TopicOperationsPort, resources: Resources) -> None:
    partitioned = resources.partitioned

    @router.post(TOPIC + "/terminate")
    async def terminate(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAcceptableError("Need to provide a persistent topic name")
        if partitioned.count(name):
            raise NotAllowedError("Termination of a partitioned topic is not allowed")
        return answer(await operations.terminate(existing(topics, resources, name)))

    @router.post(TOPIC + "/terminate/partitions")
    async def terminate_partitions(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError("Termination of a non-persistent topic is not allowed")
        if not partitioned.count(name):
            existing(topics, resources, name)
            raise NotAllowedError(
                "Termination of a non-partitioned topic is not allowed using partitioned-terminate, "
                "please use terminate commands"
            )
        ids = {
            str(part.partition_index): await operations.terminate(part) for part in parts_of(topics, resources, name)
        }
        return answer(ids)

    @router.delete(TOPIC + "/truncate")
    async def truncate(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise PreconditionFailedError("unsupport truncate")
        for part in parts_of(topics, resources, name):
            await operations.truncate(part)
        return done()

    @router.post(TOPIC + "/trim")
    async def trim(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError("Trim on a non-persistent topic is not allowed")
        for part in parts_of(topics, resources, name):
            await operations.trim(part)
        return done(200)

    @router.post(TOPIC + "/createMissedPartitions")
    async def create_missed(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        count = partitioned.count(name)
        if not count:
            raise TopicNotFoundError(f"Topic {name.fqn} does not exist")
        await topics.create_partitions(name, 0, count)
        return done()


def _properties(router: APIRouter, topics: TopicsPort, operations: TopicOperationsPort, resources: Resources) -> None:
    """Of a partitioned topic, those of the whole."""
    partitioned, path = resources.partitioned, TOPIC + "/properties"

    def properties_of(name: TopicName) -> dict[str, str]:
        if not name.persistent:
            raise NotAcceptableError("Need to provide a persistent topic name")
        found = partitioned.get(name)
        if found is not None:
            return dict(found.properties)
        return operations.topic_properties(existing(topics, resources, name))

    async def store(name: TopicName, properties: dict[str, str]) -> Response:
        check_no_shadow(properties)
        if partitioned.get(name) is not None:
            partitioned.set_properties(name, properties)
        else:
            await operations.set_topic_properties(name, properties)
        return done()

    @router.get(path)
    async def get_properties(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        return answer(properties_of(topic_name(domain, tenant, namespace, topic)))

    @router.put(path)
    async def update_properties(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        return await store(name, {**properties_of(name), **await text_map_body(request)})

    @router.delete(path)
    async def remove_property(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText, key: str | None = None
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        left = {} if key is None else {k: value for k, value in properties_of(name).items() if k != key}
        return await store(name, left)


def _of_namespaces(
    router: APIRouter, topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources
) -> None:
    def topics_of(tenant: str, namespace: str, bundle: str | None = None) -> Iterator[TopicName]:
        name = namespace_name(tenant, namespace)
        resources.namespaces.policies(name)
        if bundle is not None:
            _check_bundle(resources, name, bundle)
        persistent = (topic for topic in topics.topics_of(name) if topic.persistent)
        # looked at one by one as it is their turn: there may be very many
        return (topic for topic in persistent if bundle is None or bundle == bundle_of(resources, topic))

    async def there(names: Iterable[TopicName]) -> AsyncIterator[TopicName]:
        """Some of the many may go before it is their turn."""
        async for topic in in_turns(names, _TOPICS_PER_TURN):
            if topics.topic_exists(topic):
                yield topic

    async def clear(names: Iterable[TopicName], subscription: str | None) -> Response:
        async for topic in there(names):
            for name in await subscriptions.subscriptions_of(topic):
                # what compaction has not read yet is nobody's backlog
                if subscription == name or (subscription is None and name != COMPACTION_SUBSCRIPTION):
                    await subscriptions.skip(topic, name, None)
        return done()

    async def unsubscribe(names: Iterable[TopicName], subscription: str) -> Response:
        async for topic in there(names):
            if subscription in await subscriptions.subscriptions_of(topic):
                await subscriptions.delete_subscription(topic, subscription, force=False)
        return done()

    async def unload(names: Iterable[TopicName]) -> Response:
        async for topic in there(names):
            await topics.unload_topic(topic)
        return done()

    @router.put(NAMESPACE + "/unload")
    async def unload_namespace(tenant: PathText, namespace: PathText) -> Response:
        return await unload(topics_of(tenant, namespace))

    @router.put(NAMESPACE + "/{bundle}/unload")
    async def unload_bundle(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        return await unload(topics_of(tenant, namespace, bundle))

    @router.post(NAMESPACE + "/clearBacklog")
    async def clear_backlog(tenant: PathText, namespace: PathText) -> Response:
        return await clear(topics_of(tenant, namespace), None)

    @router.post(NAMESPACE + "/clearBacklog/{subscription}")
    async def clear_backlog_of(tenant: PathText, namespace: PathText, subscription: PathText) -> Response:
        return await clear(topics_of(tenant, namespace), subscription)

    @router.post(NAMESPACE + "/{bundle}/clearBacklog")
    async def clear_bundle(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        return await clear(topics_of(tenant, namespace, bundle), None)

    @router.post(NAMESPACE + "/{bundle}/clearBacklog/{subscription}")
    async def clear_bundle_of(
        tenant: PathText, namespace: PathText, bundle: PathText, subscription: PathText
    ) -> Response:
        return await clear(topics_of(tenant, namespace, bundle), subscription)

    @router.post(NAMESPACE + "/unsubscribe/{subscription}")
    async def unsubscribe_all(tenant: PathText, namespace: PathText, subscription: PathText) -> Response:
        return await unsubscribe(topics_of(tenant, namespace), subscription)

    @router.post(NAMESPACE + "/{bundle}/unsubscribe/{subscription}")
    async def unsubscribe_bundle(
        tenant: PathText, namespace: PathText, bundle: PathText, subscription: PathText
    ) -> Response:
        return await unsubscribe(topics_of(tenant, namespace, bundle), subscription)


def _check_bundle(resources: Resources, name: NamespaceName, bundle: str) -> None:
    """Raises PreconditionFailedError unless it is one of the namespace's pieces."""
    found: Json = resources.namespaces.policies(name)["bundles"]
    listed = found.get("boundaries") if isinstance(found, dict) else None
    boundaries = [str(text) for text in listed] if isinstance(listed, list) else []
    pieces = dict(pairwise(boundaries))
    low, _, high = bundle.partition("_")
    if low not in pieces:
        raise PreconditionFailedError(f"Bundle {bundle} is not a bundle of namespace {name}")
    if pieces[low] != high:
        raise PreconditionFailedError(
            f"Invalid upper boundary for bundle {name}/{bundle}. Expected upper boundary of {name}/{low}_{pieces[low]}"
        )
