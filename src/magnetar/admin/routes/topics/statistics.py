"""Statistics of topics (rules 11.4.4, 11.4.11, 11.4.12)."""

from __future__ import annotations

import asyncio
from typing import Annotated

from starlette.responses import Response

from magnetar.admin.http.arguments import Together
from magnetar.admin.http.bodies import with_many
from magnetar.admin.http.parameters import TOPIC, Flag, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import StatisticsPort, StatsOptions, TopicsPort
from magnetar.admin.routes.topics.topics import existing
from magnetar.admin.values.partitioned_stats import PartitionedStats
from magnetar.metadata.partitioned import require_no_partition
from magnetar.metadata.resources import Resources
from magnetar.model.errors import TopicNotFoundError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject, PartitionedTopic


def _options(
    getPreciseBacklog: Flag = False,
    subscriptionBacklogSize: Flag = True,
    getEarliestTimeInBacklog: Flag = False,
    excludePublishers: Flag = False,
    excludeConsumers: Flag = False,
) -> StatsOptions:
    return StatsOptions(
        getPreciseBacklog, subscriptionBacklogSize, getEarliestTimeInBacklog, excludePublishers, excludeConsumers
    )


Options = Annotated[StatsOptions, Together(_options)]


def routes(topics: TopicsPort, statistics: StatisticsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(TOPIC + "/stats")
    async def get_stats(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, options: Options
    ) -> Response:
        name = existing(topics, resources, topic_name(domain, tenant, namespace, topic))
        return with_many(await statistics.topic_stats(name, options), "subscriptions")

    @router.get(TOPIC + "/internalStats")
    async def get_internal_stats(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        name = existing(topics, resources, topic_name(domain, tenant, namespace, topic))
        return with_many(await statistics.internal_stats(name), "cursors")

    @router.get(TOPIC + "/partitioned-stats")
    async def get_partitioned_stats(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        options: Options,
        perPartition: Flag = True,
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        require_no_partition(name)
        found = _partitioned(resources, name)
        together, shown = PartitionedStats(), dict[str, JsonObject]()
        for part in topics.partitions_of(name):
            if topics.topic_exists(part):
                one = await statistics.topic_stats(part, options)
                together.add(one)
                if perPartition:
                    shown[part.fqn] = one
                await asyncio.sleep(0)
        return with_many({**together.as_json(), "metadata": found.as_json()}, "partitions", shown)

    @router.get(TOPIC + "/partitioned-internalStats")
    async def get_partitioned_internal_stats(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        found = _partitioned(resources, name)
        parts: dict[str, JsonObject] = {}
        for part in topics.partitions_of(name):
            if topics.topic_exists(part):
                parts[part.fqn] = await statistics.internal_stats(part)
                await asyncio.sleep(0)
        return with_many({"metadata": found.as_json()}, "partitions", parts)

    return router


def _partitioned(resources: Resources, topic: TopicName) -> PartitionedTopic:
    found = resources.partitioned.get(topic)
    if found is None:
        raise TopicNotFoundError(f"Partitioned Topic {topic.fqn} not found")
    return found
