"""Why is nothing arriving, and where are the messages of a key: routes of our own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from magnetar.admin.http.bodies import answer
from magnetar.admin.http.parameters import TOPIC, PathText, topic_name
from magnetar.admin.ports import Admin
from magnetar.admin.routes.topics.topics import existing
from magnetar.model.errors import InvalidValueError, TopicNotFoundError
from magnetar.model.names import TopicName


def routes(admin: Admin) -> APIRouter:
    """All routes of this group."""
    router = APIRouter(tags=["subscriptions"])

    @router.get(TOPIC + "/subscription/{subscription}/explain")
    async def explain(
        domain: PathText, tenant: PathText, namespace: PathText, topic: PathText, subscription: PathText
    ) -> Response:
        name = _served(admin, topic_name(domain, tenant, namespace, topic))
        return answer(await admin.broker.explain(name, subscription))

    @router.get(TOPIC + "/subscription/{subscription}/unacknowledged")
    async def unacknowledged(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: PathText,
        subscription: PathText,
        hash_value: Annotated[int | None, Query(alias="hash")] = None,
        key: str | None = None,
    ) -> Response:
        if (hash_value is None) == (key is None):
            raise InvalidValueError("Give either hash, as statistics show it, or key, the key of messages.")
        name = _served(admin, topic_name(domain, tenant, namespace, topic))
        return answer(await admin.broker.unacknowledged(name, subscription, hash_value, key))

    return router


def _served(admin: Admin, topic: TopicName) -> TopicName:
    """``topic`` if it exists and has no partitions, of which each has its own answer. Raises TopicNotFoundError."""
    if count := admin.resources.partitioned.count(topic):
        raise TopicNotFoundError(
            f"Topic {topic.fqn} has {count} partitions, of which each is explained by itself, as "
            f"{topic.partition(0).fqn}"
        )
    return existing(admin, topic)
