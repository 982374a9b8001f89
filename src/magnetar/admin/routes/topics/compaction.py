"""Compaction: begin a run, and its status (rules 4.7.4, 11.4.6)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import OffloadsPort, TopicOperationsPort, TopicsPort
from magnetar.admin.routes.topics.topics import each_part, existing
from magnetar.metadata.resources import Resources
from magnetar.model.errors import NotAllowedError, TopicNotFoundError
from magnetar.model.names import TopicName


def routes(
    topics: TopicsPort, operations: TopicOperationsPort, offloads: OffloadsPort, resources: Resources
) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.put(TOPIC + "/compaction")
    async def compact(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        async for part in each_part(topics, resources, name):
            await operations.compact_topic(_persistent(part))
        return done()

    @router.get(TOPIC + "/compaction")
    async def status(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return answer(await operations.compaction_status(_persistent(existing(topics, resources, name))))

    @router.post(TOPIC + "/compaction/plan")
    async def plan(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = _persistent(existing(topics, resources, topic_name(domain, tenant, namespace, topic)))
        return answer(await offloads.plan_compaction(name))

    @router.post(TOPIC + "/compaction/view")
    async def adopt(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = _persistent(existing(topics, resources, topic_name(domain, tenant, namespace, topic)))
        offloads.adopt_view(name, await object_body(request) or {})
        return done()

    return router


def _persistent(topic: TopicName) -> TopicName:
    if not topic.persistent:
        raise NotAllowedError(f"{topic.fqn} is not persistent: nothing of it is kept that could be compacted")
    return topic
