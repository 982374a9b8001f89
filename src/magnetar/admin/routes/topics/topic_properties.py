"""Properties of topics (rule 11.4.9); a partitioned topic has one set of them for all its partitions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, text_map_body
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicOperationsPort, TopicsPort
from magnetar.admin.routes.topics.topics import check_properties, existing
from magnetar.admin.values.coercion import require_users
from magnetar.admin.values.policy_values import PROPERTIES_MAX
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    NotAcceptableError,
)
from magnetar.model.names import TopicName


def routes(topics: TopicsPort, operations: TopicOperationsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    partitioned, path = resources.partitioned, TOPIC + "/properties"

    def properties_of(name: TopicName) -> dict[str, str]:
        if not name.persistent:
            raise NotAcceptableError("Need to provide a persistent topic name")
        found = partitioned.get(name)
        if found is not None:
            return dict(found.properties)
        return operations.topic_properties(existing(topics, resources, name))

    async def store(name: TopicName, properties: dict[str, str]) -> Response:
        if partitioned.get(name) is not None:
            await partitioned.set_properties(name, properties)
        else:
            await operations.set_topic_properties(name, properties)
        return done()

    @router.get(path)
    async def get_properties(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        return answer(properties_of(topic_name(domain, tenant, namespace, topic)))

    @router.put(path)
    async def update_properties(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        added = await text_map_body(request)
        check_properties(added)
        # after the body, which may take its time; names that an older version let in stay until they are removed
        both = {**properties_of(name), **added}
        require_users(both, (), PROPERTIES_MAX)
        return await store(name, both)

    @router.delete(path)
    async def remove_property(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, key: str | None = None
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        left = {} if key is None else {k: value for k, value in properties_of(name).items() if k != key}
        return await store(name, left)

    return router
