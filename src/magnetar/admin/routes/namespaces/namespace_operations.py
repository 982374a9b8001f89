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


def routes(topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources) -> APIRouter:
    """Build the routes of this group."""
    router = APIRouter(tags=["topics"])

    def topics_of(tenant: str, namespace: str, bundle: str | None = None) -> Iterator[TopicName]:
        name = namespace_name(tenant, namespace)
        resources.namespaces.policies(name)
        if bundle is not None:
            check_bundle(resources, name, bundle)
        persistent = (topic for topic in topics.topics_of(name) if topic.persistent)
        # one by one, when the loop below reaches them: there may be very many
        return (topic for topic in persistent if bundle is None or bundle == bundle_of(resources, topic))

    async def there(names: Iterable[TopicName]) -> AsyncIterator[TopicName]:
        """Those of ``names`` that still exist when they are reached."""
        async for topic in in_turns(names, _TOPICS_PER_TURN):
            if topics.topic_exists(topic):
                yield topic

    async def clear(names: Iterable[TopicName], subscription: str | None) -> Response:
        async for topic in there(names):
            for name in await subscriptions.subscriptions_of(topic):
                # the cursor of compaction is not a user's backlog
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

    return router
