"""What ends a topic or its data: terminate, truncate, trim (rules 4.7.1 and 11.4.6).

On a partitioned topic an operation goes to all its partitions.
"""

from __future__ import annotations

from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicOperationsPort, TopicsPort
from magnetar.admin.routes.half_done import half_done
from magnetar.admin.routes.topics.topics import each_part, existing
from magnetar.metadata.resources import Resources
from magnetar.model.errors import NotAcceptableError, NotAllowedError, PreconditionFailedError
from magnetar.model.policies import Json


def routes(topics: TopicsPort, operations: TopicOperationsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    partitioned = resources.partitioned

    @router.post(TOPIC + "/terminate")
    async def terminate(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAcceptableError("Need to provide a persistent topic name")
        if partitioned.count(name):
            raise NotAllowedError("Termination of a partitioned topic is not allowed")
        return answer(await operations.terminate(existing(topics, resources, name)))

    @router.post(TOPIC + "/terminate/partitions")
    async def terminate_partitions(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText
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
        ids: dict[str, Json] = {}
        with half_done(lambda: f"{len(ids)} partitions are terminated" if ids else ""):
            async for part in each_part(topics, resources, name):
                ids[str(part.partition_index)] = await operations.terminate(part)
        return answer(ids)

    @router.delete(TOPIC + "/truncate")
    async def truncate(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise PreconditionFailedError("unsupport truncate")
        async for part in each_part(topics, resources, name):
            await operations.truncate(part)
        return done()

    @router.post(TOPIC + "/trim")
    async def trim(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError("Trim on a non-persistent topic is not allowed")
        async for part in each_part(topics, resources, name):
            await operations.trim(part)
        return done(200)

    return router
