"""Operations on all topics of a namespace or of one bundle: unload, clear backlogs, unsubscribe (rule 11.3.8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import done
from magnetar.admin.http.parameters import NAMESPACE, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import SubscriptionsPort, TopicsPort
from magnetar.admin.routes.namespaces.bundles import bundle_text, ring_of
from magnetar.authorization.access import TenantAccess, TopicAccess
from magnetar.authorization.operations import TopicOperation
from magnetar.metadata.resources import Resources
from magnetar.model.names import TopicName
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
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
        ring = ring_of(self._resources, name)
        persistent = (topic for topic in self._topics.topics_of(name) if topic.persistent)
        if bundle is None:
            return persistent
        chosen = bundle_text(*ring.existing(name, bundle))
        return (topic for topic in persistent if ring.of_topic(topic) == chosen)

    async def existing(self, names: Iterable[TopicName]) -> AsyncIterator[TopicName]:
        """Those of ``names`` that still exist when they are reached."""
        async for topic in in_turns(names, _TOPICS_PER_TURN):
            if self._topics.topic_exists(topic):
                yield topic


class _Members:
    """The subscriptions that a request is about, topic by topic; nothing begins unless the caller may touch each."""

    def __init__(self, chosen: _NamespaceTopics, subscriptions: SubscriptionsPort, permissions: Permissions) -> None:
        self._chosen = chosen
        self._subscriptions = subscriptions
        self._permissions = permissions

    async def of(
        self,
        request: Request,
        operation: TopicOperation,
        tenant: str,
        namespace: str,
        bundle: str | None,
        named: str | None,
    ) -> AsyncIterator[tuple[TopicName, str]]:
        """Yield topics with the subscription ``named``, or with all of them. Raises AuthorizationRefusedError."""
        tenant_admin = self._permissions.allows(request, TenantAccess(tenant))
        if not tenant_admin:
            async for topic, subscription in self._all(tenant, namespace, bundle, named):
                self._permissions.require(request, TopicAccess(topic, operation, subscription))
        async for topic, subscription in self._all(tenant, namespace, bundle, named):
            if not tenant_admin:
                # made since, or granted to others since
                self._permissions.require(request, TopicAccess(topic, operation, subscription))
            yield topic, subscription

    async def _all(
        self, tenant: str, namespace: str, bundle: str | None, named: str | None
    ) -> AsyncIterator[tuple[TopicName, str]]:
        async for topic in self._chosen.existing(self._chosen.names(tenant, namespace, bundle)):
            for name in await self._subscriptions.subscriptions_of(topic):
                # the cursor of compaction is not a user's
                if name == named or (named is None and name != COMPACTION_SUBSCRIPTION):
                    yield topic, name


def routes(
    topics: TopicsPort, subscriptions: SubscriptionsPort, resources: Resources, permissions: Permissions
) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    chosen = _NamespaceTopics(topics, resources)
    _unload_routes(router, chosen, topics)
    members = _Members(chosen, subscriptions, permissions)
    _clear_routes(router, members, subscriptions)
    _unsubscribe_routes(router, members, subscriptions)
    return router


def _unload_routes(router: RouteGroup, chosen: _NamespaceTopics, topics: TopicsPort) -> None:
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


def _clear_routes(router: RouteGroup, members: _Members, subscriptions: SubscriptionsPort) -> None:
    async def clear(
        request: Request, tenant: str, namespace: str, bundle: str | None = None, subscription: str | None = None
    ) -> Response:
        async for topic, name in members.of(request, TopicOperation.SKIP, tenant, namespace, bundle, subscription):
            await subscriptions.skip(topic, name, None)
        return done()

    @router.post(NAMESPACE + "/clearBacklog")
    async def clear_backlog(tenant: PathText, namespace: PathText, request: Request) -> Response:
        return await clear(request, tenant, namespace)

    @router.post(NAMESPACE + "/clearBacklog/{subscription}")
    async def clear_backlog_of(
        tenant: PathText, namespace: PathText, subscription: PathText, request: Request
    ) -> Response:
        return await clear(request, tenant, namespace, None, subscription)

    @router.post(NAMESPACE + "/{bundle}/clearBacklog")
    async def clear_bundle(tenant: PathText, namespace: PathText, bundle: PathText, request: Request) -> Response:
        return await clear(request, tenant, namespace, bundle)

    @router.post(NAMESPACE + "/{bundle}/clearBacklog/{subscription}")
    async def clear_bundle_of(
        tenant: PathText, namespace: PathText, bundle: PathText, subscription: PathText, request: Request
    ) -> Response:
        return await clear(request, tenant, namespace, bundle, subscription)


def _unsubscribe_routes(router: RouteGroup, members: _Members, subscriptions: SubscriptionsPort) -> None:
    async def unsubscribe(
        request: Request, tenant: str, namespace: str, bundle: str | None, subscription: str
    ) -> Response:
        operation = TopicOperation.UNSUBSCRIBE
        async for topic, name in members.of(request, operation, tenant, namespace, bundle, subscription):
            await subscriptions.delete_subscription(topic, name, force=False)
        return done()

    @router.post(NAMESPACE + "/unsubscribe/{subscription}")
    async def unsubscribe_all(
        tenant: PathText, namespace: PathText, subscription: PathText, request: Request
    ) -> Response:
        return await unsubscribe(request, tenant, namespace, None, subscription)

    @router.post(NAMESPACE + "/{bundle}/unsubscribe/{subscription}")
    async def unsubscribe_bundle(
        tenant: PathText, namespace: PathText, bundle: PathText, subscription: PathText, request: Request
    ) -> Response:
        return await unsubscribe(request, tenant, namespace, bundle, subscription)
