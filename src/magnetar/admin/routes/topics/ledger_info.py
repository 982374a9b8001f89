"""What the metadata of a topic's ledgers and cursors says: internal-info, backlog and backlogSize."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, object_body, with_many
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import StatisticsPort, TopicsPort
from magnetar.admin.routes.topics.topics import each_part, existing, parts_of
from magnetar.admin.values.coercion import number
from magnetar.metadata.resources import Resources
from magnetar.model.errors import NotAllowedError
from magnetar.model.ids import Position


def routes(topics: TopicsPort, statistics: StatisticsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(TOPIC + "/internal-info")
    async def get_managed_ledger_info(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        parts_of(topics, resources, name)
        if not name.persistent:
            raise NotAllowedError(f"{name.fqn} has no ledgers: it is a non-persistent topic, which stores nothing")
        parts = each_part(topics, resources, name)
        found = {part.fqn: await statistics.managed_ledger_info(part) async for part in parts}
        if resources.partitioned.count(name):
            return with_many({"version": 0}, "partitions", found)
        return with_many(found[name.fqn], "cursors")

    @router.get(TOPIC + "/backlog")
    async def get_backlog(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        resources.require_namespace(name)
        count = resources.partitioned.count(name)
        named = topics.partitions_of(name) if count else [name]
        # a topic that does not exist, or stores nothing, has no backlog, as in Pulsar
        parts = [part for part in named if part.persistent and topics.topic_exists(part)]
        return answer(await statistics.offline_backlog(name, parts))

    @router.put(TOPIC + "/backlogSize")
    async def get_backlog_size(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        given = await object_body(request) or {}
        if resources.partitioned.count(name):
            raise NotAllowedError("calculate backlog size is not allowed for partitioned-topic")
        existing(topics, resources, name)
        if not name.persistent:
            raise NotAllowedError("calculate backlog size is not allowed for non-persistent topic")
        after = Position(number(given.get("ledgerId"), '"ledgerId"'), number(given.get("entryId"), '"entryId"'))
        return answer(statistics.backlog_size(name, after))

    return router
