"""Operations on all topics of a namespace or of one bundle: unload, clear backlogs, unsubscribe (rule 11.3.8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from magnetar.admin.http.bodies import done
from magnetar.admin.http.parameters import NAMESPACE, PathText, namespace_name
from magnetar.admin.ports import SubscriptionsPort, TopicsPort
from magnetar.admin.routes.namespaces.bundles import bundle_of, check_bundle
from magnetar.compaction.compaction_cursor import COMPACTION_SUBSCRIPTION
from magnetar.metadata.resources import Resources
from magnetar.model.names import TopicName
from magnetar.runtime.tasks import in_turns

_TOPICS_PER_TURN: Final = 20


class _NamespaceTopics:
    """The persistent topics of a namespace or of one of its bundles, one by one."""

    def __init__(self, topics: TopicsPort, resources: Resources) -> None:
        self._topics = topics
        self._resources = resources

    def names(self, tenant: str, namespace: str, bundle: str | None = None) -> Iterator[TopicName]:
        """Names that may be very many. Raises if the namespace or the bundle does not exist."""
        name = namespace_name(tenant, namespace)
        self._resources.namespaces.policies(name)
        if bundle is not None:
            check_bundle(self._resources, name, bundle)
        persistent = (topic for topic in self._topics.topics_of(name) if topic.persistent)
        return (topic for topic in persistent if bundle is None or bundle == bundle_of(self._resources, topic))

    async def existing(self, names: Iterable[TopicName]) -> AsyncIterator[TopicName]:
        """Those of ``names`` that still exist when they are reached."""
        async for topic in in_turns(names, _TOPICS_PER_TURN):
            if self._topics.topic_exists(topic):
                yield topic


def routes(topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources) -> APIRouter:
    """Build the routes of this group."""
    router = APIRouter(tags=["topics"])
    chosen = _NamespaceTopics(topics, resources)
    _unload_routes(router, chosen, topics)
    _clear_routes(router, chosen, subscriptions)
    _unsubscribe_routes(router, chosen, subscriptions)
    return router


def _unload_routes(router: APIRouter, chosen: _NamespaceTopics, topics: TopicsPort) -> None:
    async def unload(names: Iterable[TopicName]) -> Response:
        async for topic in chosen.existing(names):
            await topics.unload_topic(topic)
        return done()

    @router.put(NAMESPACE + "/unload")
    async def unload_namespace(tenant: PathText, namespace: PathText) -> Response:
        return await unload(chosen.names(tenant, namespace))

    @router.put(NAMESPACE + "/{bundle}/unload")
    async def unload_bundle(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        return await unload(chosen.names(tenant, namespace, bundle))


def _clear_routes(router: APIRouter, chosen: _NamespaceTopics, subscriptions: SubscriptionsPort) -> None:
    async def clear(names: Iterable[TopicName], subscription: str | None) -> Response:
        async for topic in chosen.existing(names):
            for name in await subscriptions.subscriptions_of(topic):
                # the cursor of compaction is not a user's backlog
                if subscription == name or (subscription is None and name != COMPACTION_SUBSCRIPTION):
                    await subscriptions.skip(topic, name, None)
        return done()

    @router.post(NAMESPACE + "/clearBacklog")
    async def clear_backlog(tenant: PathText, namespace: PathText) -> Response:
        return await clear(chosen.names(tenant, namespace), None)

    @router.post(NAMESPACE + "/clearBacklog/{subscription}")
    async def clear_backlog_of(tenant: PathText, namespace: PathText, subscription: PathText) -> Response:
        return await clear(chosen.names(tenant, namespace), subscription)

    @router.post(NAMESPACE + "/{bundle}/clearBacklog")
    async def clear_bundle(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        return await clear(chosen.names(tenant, namespace, bundle), None)

    @router.post(NAMESPACE + "/{bundle}/clearBacklog/{subscription}")
    async def clear_bundle_of(
        tenant: PathText, namespace: PathText, bundle: PathText, subscription: PathText
    ) -> Response:
        return await clear(chosen.names(tenant, namespace, bundle), subscription)


def _unsubscribe_routes(router: APIRouter, chosen: _NamespaceTopics, subscriptions: SubscriptionsPort) -> None:
    async def unsubscribe(names: Iterable[TopicName], subscription: str) -> Response:
        async for topic in chosen.existing(names):
            if subscription in await subscriptions.subscriptions_of(topic):
                await subscriptions.delete_subscription(topic, subscription, force=False)
        return done()

    @router.post(NAMESPACE + "/unsubscribe/{subscription}")
    async def unsubscribe_all(tenant: PathText, namespace: PathText, subscription: PathText) -> Response:
        return await unsubscribe(chosen.names(tenant, namespace), subscription)

    @router.post(NAMESPACE + "/{bundle}/unsubscribe/{subscription}")
    async def unsubscribe_bundle(
        tenant: PathText, namespace: PathText, bundle: PathText, subscription: PathText
    ) -> Response:
        return await unsubscribe(chosen.names(tenant, namespace, bundle), subscription)
