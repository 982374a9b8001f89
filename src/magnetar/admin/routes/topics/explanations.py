"""Why nothing arrives, and where the messages of a key are: routes of magnetar's own."""

from __future__ import annotations

from typing import Annotated

from starlette.responses import Response

from magnetar.admin.http.arguments import RequestParameter
from magnetar.admin.http.bodies import answer
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, SubscriptionText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import StatisticsPort, TopicsPort
from magnetar.admin.routes.topics.topics import existing
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, TopicNotFoundError
from magnetar.model.names import TopicName


def routes(topics: TopicsPort, statistics: StatisticsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.get(TOPIC + "/subscription/{subscription}/explain")
    async def explain(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText
    ) -> Response:
        name = _served(topics, resources, topic_name(domain, tenant, namespace, topic))
        return answer(await statistics.explain(name, subscription))

    @router.get(TOPIC + "/subscription/{subscription}/unacknowledged")
    async def unacknowledged(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        hash_value: Annotated[int | None, RequestParameter(name="hash")] = None,
        key: str | None = None,
    ) -> Response:
        if (hash_value is None) == (key is None):
            raise InvalidValueError("Give either hash, as statistics show it, or key, the key of messages.")
        name = _served(topics, resources, topic_name(domain, tenant, namespace, topic))
        return answer(await statistics.unacknowledged(name, subscription, hash_value, key))

    return router


def _served(topics: TopicsPort, resources: Resources, topic: TopicName) -> TopicName:
    """Return ``topic`` if it exists and is not partitioned; each partition is asked. Raises TopicNotFoundError."""
    if count := resources.partitioned.count(topic):
        raise TopicNotFoundError(
            f"Topic {topic.fqn} has {count} partitions, of which each is explained by itself, as "
            f"{topic.partition(0).fqn}"
        )
    return existing(topics, resources, topic)
