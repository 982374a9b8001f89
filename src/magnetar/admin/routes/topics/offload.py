"""Offloading: begin a run, its status (rule 11.4.6), and adoption of copies that a job wrote (magnetar's own)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import OffloadsPort, TopicsPort
from magnetar.admin.routes.topics.topics import each_part, existing
from magnetar.admin.values.coercion import number
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAllowedError, TopicNotFoundError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName


def routes(topics: TopicsPort, offloads: OffloadsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    def one(domain: str, tenant: str, namespace: str, topic: str) -> TopicName:
        name = topic_name(domain, tenant, namespace, topic)
        if resources.partitioned.count(name):
            raise TopicNotFoundError(f"Topic {name.fqn} not found")
        return _persistent(existing(topics, resources, name))

    @router.put(TOPIC + "/offload")
    async def offload(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        given = await object_body(request) or {}
        until = Position(number(given.get("ledgerId"), '"ledgerId"'), number(given.get("entryId"), '"entryId"'))
        async for part in each_part(topics, resources, topic_name(domain, tenant, namespace, topic)):
            offloads.begin(_persistent(part), until)
        return done()

    @router.get(TOPIC + "/offload")
    async def status(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        return answer(offloads.status(one(domain, tenant, namespace, topic)))

    @router.get(TOPIC + "/offload/ledgers")
    async def ledgers(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        return answer(offloads.ledgers(one(domain, tenant, namespace, topic)))

    @router.post(TOPIC + "/offload/{ledger}")
    async def adopt(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, ledger: int, request: Request
    ) -> Response:
        name = (await object_body(request) or {}).get("name")
        if not isinstance(name, str):
            raise InvalidValueError('expected {"name": "..."}: the object\'s name below offloadUrl')
        return answer(await offloads.adopt(one(domain, tenant, namespace, topic), ledger, name))

    return router


def _persistent(topic: TopicName) -> TopicName:
    if not topic.persistent:
        raise NotAllowedError(f"{topic.fqn} is not persistent: nothing of it is kept that could be offloaded")
    return topic
