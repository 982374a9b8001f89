"""Partitioned topics: create, grow, show, delete (rules 11.4.1, 2.14)."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body
from magnetar.admin.http.parameters import TOPIC, TOPICS, Flag, NameText, PathText, namespace_name, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.namespaces.removal import remove_partitioned
from magnetar.admin.routes.topics.topics import check_not_system, check_properties, existing
from magnetar.admin.values.coercion import number, texts
from magnetar.metadata.partitioned import require_no_partition
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    ConflictError,
    MetadataError,
    NotAcceptableError,
    PreconditionFailedError,
    TopicNotFoundError,
)
from magnetar.model.names import TopicName
from magnetar.model.policies import PARTITIONS_MAX, Json, PartitionedTopic
from magnetar.model.system_topics import is_system_topic

log = logging.getLogger(__name__)

PATH = TOPIC + "/partitions"


def routes(topics: TopicsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _read_routes(router, topics, resources)
    _change_routes(router, topics, resources)
    return router


def _read_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    partitioned = resources.partitioned

    @router.get(TOPICS + "/partitioned")
    async def list_partitioned(
        domain: PathText, tenant: PathText, namespace: PathText, includeSystemTopic: Flag = False
    ) -> Response:
        name = namespace_name(tenant, namespace)
        resources.namespaces.policies(name)
        return answer(
            [
                topic.fqn
                for topic in partitioned.of_namespace(name)
                if topic.domain == domain and (includeSystemTopic or not is_system_topic(topic))
            ]
        )

    @router.get(PATH)
    async def get_partitions(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, checkAllowAutoCreation: Flag = False
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        found = partitioned.get(name)
        if found is None:
            if checkAllowAutoCreation:
                resources.require_namespace(name)
                found = PartitionedTopic(await topics.partition_count(name, auto_create=True))
            else:
                existing(topics, resources, name)
                found = PartitionedTopic(0)
        return answer(found.as_json())


def _change_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    partitioned = resources.partitioned

    @router.put(PATH)
    async def create_partitioned(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        require_no_partition(name, strict=True)
        wanted = _wanted(await json_body(request))
        check_properties(wanted.properties)
        resources.require_namespace(name)
        if wanted.partitions > 0 and topics.topic_exists(name):
            raise ConflictError("This topic already exists")
        check_not_system(name)
        if wanted.partitions > 0 and not topics.room_for(name.namespace, wanted.partitions):
            raise PreconditionFailedError("Exceed maximum number of topics in namespace.")
        await partitioned.create(name, wanted.partitions, wanted.properties, to_make=True)
        await make_missing(topics, resources, name)
        return done()

    @router.post(PATH)
    async def grow(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        require_no_partition(name)
        count = number(await json_body(request), "the number of partitions")
        resources.require_namespace(name)
        more = count - partitioned.count(name)
        if partitioned.count(name) and more > 0 and not topics.room_for(name.namespace, more):
            raise PreconditionFailedError("Exceed maximum number of topics in namespace.")
        await partitioned.grow(name, count)
        await make_missing(topics, resources, name)
        return done()

    @router.post(TOPIC + "/createMissedPartitions")
    async def create_missed_partitions(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        require_no_partition(name, strict=True)
        resources.require_namespace(name)
        count = partitioned.count(name)
        if not count:
            raise TopicNotFoundError(f"Topic {name.fqn} does not exist")
        check_served(name, count)
        await topics.create_partitions(name, 0, count)
        await _note_made(resources, name, count)
        return done()

    @router.delete(PATH)
    async def delete_partitioned(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, force: Flag = False
    ) -> Response:
        name = topic_name(domain, tenant, namespace, topic)
        require_no_partition(name)
        if not partitioned.count(name):
            if topics.topic_exists(name):
                raise ConflictError(
                    f"{name.fqn} is a non-partitioned topic. "
                    "Instead of calling delete-partitioned-topic please call delete."
                )
            resources.require_namespace(name)
            raise TopicNotFoundError(f"Topic {name.fqn} not found.")
        await remove_partitioned(topics, resources, name, force=force)
        return done()


def check_served(topic: TopicName, count: int) -> None:
    """Raises NotAcceptableError for more partitions than a broker serves; older versions allowed them."""
    if count > PARTITIONS_MAX:
        raise NotAcceptableError(
            f"{topic.fqn} is said to have {count} partitions, a broker serves {PARTITIONS_MAX}: delete it"
        )


async def make_missing(topics: TopicsPort, resources: Resources, topic: TopicName) -> None:
    """Make the partitions that the metadata lists as missing, those of an earlier attempt included."""
    partitioned = resources.partitioned
    first, end = partitioned.unmade(topic), partitioned.count(topic)
    if first is not None:
        await topics.create_partitions(topic, first, end)
        await _note_made(resources, topic, end)


async def _note_made(resources: Resources, topic: TopicName, end: int) -> None:
    """Take away the note that partitions are to be made; they are there and stay, if the disk refuses that, too."""
    try:
        await resources.partitioned.made(topic, end)
    except MetadataError as error:
        text = "%s: its partitions are made, but are noted as missing until the next start: %s"
        log.warning(text, topic.fqn, error, extra={"topic": topic.fqn})


def _wanted(body: Json) -> PartitionedTopic:
    """Parse a bare count, or an object with count and properties (type application/vnd.partitioned-topic-...)."""
    if not isinstance(body, dict):
        return PartitionedTopic(number(body, "the number of partitions"))
    count = number(body.get("partitions"), '"partitions"')
    return PartitionedTopic(count, texts(body.get("properties"), "properties as a JSON object of texts"))
