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
from magnetar.admin.ports import Admin
from magnetar.admin.routes.lookups import bundle_of
from magnetar.admin.routes.topics.topics import check_no_shadow, existing, parts_of
from magnetar.compaction.compaction_cursor import COMPACTION_SUBSCRIPTION
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


def routes(admin: Admin) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(tags=["topics"])
    _ends(router, admin)
    _properties(router, admin)
    _of_namespaces(router, admin)
    return router


def _ends(router: APIRouter, admin: Admin) -> None:
    partitioned = admin.resources.partitioned

    @router.post(TOPIC + "/terminate")
    async def terminate(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAcceptableError("Need to provide a persistent topic name")
        if partitioned.count(name):
            raise NotAllowedError("Termination of a partitioned topic is not allowed")
        return answer(await admin.broker.terminate(existing(admin, name)))

    @router.post(TOPIC + "/terminate/partitions")
    async def terminate_partitions(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError("Termination of a non-persistent topic is not allowed")
        if not partitioned.count(name):
            existing(admin, name)
            raise NotAllowedError(
                "Termination of a non-partitioned topic is not allowed using partitioned-terminate, "
                "please use terminate commands"
            )
        ids = {str(part.partition_index): await admin.broker.terminate(part) for part in parts_of(admin, name)}
        return answer(ids)

    @router.delete(TOPIC + "/truncate")
    async def truncate(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise PreconditionFailedError("unsupport truncate")
        for part in parts_of(admin, name):
            await admin.broker.truncate(part)
        return done()

    @router.post(TOPIC + "/trim")
    async def trim(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError("Trim on a non-persistent topic is not allowed")
        for part in parts_of(admin, name):
            await admin.broker.trim(part)
        return done(200)

    @router.post(TOPIC + "/createMissedPartitions")
    async def create_missed(domain: PathText, tenant: PathText, namespace: PathText, topic: PathText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        count = partitioned.count(name)
        if not count:
            raise TopicNotFoundError(f"Topic {name.fqn} does not exist")
        await admin.broker.create_partitions(name, 0, count)
        return done()


def _properties(router: APIRouter, admin: Admin) -> None:
    """Of a partitioned topic, those of the whole."""
    partitioned, path = admin.resources.partitioned, TOPIC + "/properties"

    def properties_of(name: TopicName) -> dict[str, str]:
        if not name.persistent:
            raise NotAcceptableError("Need to provide a persistent topic name")
        found = partitioned.get(name)
        if found is not None:
            return dict(found.properties)
        return admin.broker.topic_properties(existing(admin, name))

    async def store(name: TopicName, properties: dict[str, str]) -> Response:
        check_no_shadow(properties)
        if partitioned.get(name) is not None:
            partitioned.set_properties(name, properties)
        else:
            await admin.broker.set_topic_properties(name, properties)
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


def _of_namespaces(router: APIRouter, admin: Admin) -> None:
    def topics_of(tenant: str, namespace: str, bundle: str | None = None) -> Iterator[TopicName]:
        name = namespace_name(tenant, namespace)
        admin.resources.namespaces.policies(name)
        if bundle is not None:
            _check_bundle(admin, name, bundle)
        topics = (topic for topic in admin.broker.topics_of(name) if topic.persistent)
        # looked at one by one as it is their turn: there may be very many
        return (topic for topic in topics if bundle is None or bundle == bundle_of(admin, topic))

    async def there(topics: Iterable[TopicName]) -> AsyncIterator[TopicName]:
        """Some of the many may go before it is their turn."""
        async for topic in in_turns(topics, _TOPICS_PER_TURN):
            if admin.broker.topic_exists(topic):
                yield topic

    async def clear(topics: Iterable[TopicName], subscription: str | None) -> Response:
        async for topic in there(topics):
            for name in await admin.broker.subscriptions_of(topic):
                # what compaction has not read yet is nobody's backlog
                if subscription == name or (subscription is None and name != COMPACTION_SUBSCRIPTION):
                    await admin.broker.skip(topic, name, None)
        return done()

    async def unsubscribe(topics: Iterable[TopicName], subscription: str) -> Response:
        async for topic in there(topics):
            if subscription in await admin.broker.subscriptions_of(topic):
                await admin.broker.delete_subscription(topic, subscription, force=False)
        return done()

    async def unload(topics: Iterable[TopicName]) -> Response:
        async for topic in there(topics):
            await admin.broker.unload_topic(topic)
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


def _check_bundle(admin: Admin, name: NamespaceName, bundle: str) -> None:
    """Raises PreconditionFailedError unless it is one of the namespace's pieces."""
    found: Json = admin.resources.namespaces.policies(name)["bundles"]
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
