"""Stored messages (rules 11.5.3, 11.5.5): by number in a backlog or from an end, by id; counts of a backlog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, json_body
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, SubscriptionText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import MessagesPort, StatisticsPort, TopicsPort
from magnetar.admin.routes.topics.topics import existing
from magnetar.admin.values.coercion import number
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotAllowedError
from magnetar.model.ids import EARLIEST, LATEST, Position
from magnetar.model.names import TopicName
from magnetar.model.policies import Json

_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")

if TYPE_CHECKING:
    from magnetar.admin.values.stored_message import StoredMessage


def routes(topics: TopicsPort, messages: MessagesPort, statistics: StatisticsPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    def stored(what: str, domain: str, tenant: str, namespace: str, topic: str) -> TopicName:
        name = topic_name(domain, tenant, namespace, topic)
        if not name.persistent:
            raise NotAllowedError(f"{what} on a non-persistent topic is not allowed")
        resources.require_namespace(name)
        if resources.partitioned.count(name):
            raise NotAllowedError(f"{what} on a partitioned topic is not allowed")
        return existing(topics, resources, name)

    @router.get(TOPIC + "/subscription/{subscription}/position/{position}")
    async def peek(
        domain: PathText,
        tenant: PathText,
        namespace: PathText,
        topic: NameText,
        subscription: SubscriptionText,
        position: int,
    ) -> Response:
        name = stored("Peek messages", domain, tenant, namespace, topic)
        if position < 1:
            raise InvalidValueError(f"message {position} of a backlog: they are counted from 1")
        return _shown(await messages.peek(name, subscription, position))

    @router.get(TOPIC + "/examinemessage")
    async def examine(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, initialPosition: str = "latest",
        messagePosition: int = 1,
    ) -> Response:  # fmt: skip
        name = stored("Examine messages", domain, tenant, namespace, topic)
        return _shown(await messages.examine(name, messagePosition, from_start=initialPosition == "earliest"))

    @router.get(TOPIC + "/ledger/{ledger}/entry/{entry}")
    async def by_id(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, ledger: int, entry: int
    ) -> Response:
        name = stored("Get message by id", domain, tenant, namespace, topic)
        return _shown(await messages.message(name, Position(ledger, entry)))

    @router.post(TOPIC + "/subscription/{subscription}/analyzeBacklog")
    async def analyze(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, subscription: SubscriptionText,
        request: Request,
    ) -> Response:  # fmt: skip
        name = stored("Analyze backlog", domain, tenant, namespace, topic)
        start = _start(await json_body(request))
        return answer(await statistics.analyze_backlog(name, subscription, start))

    return router


def _shown(message: StoredMessage) -> Response:
    # Pulsar labels the bytes as JSON; its Java client compares the case of the names, which Response would lose
    found = Response(message.payload, media_type="application/json")
    found.raw_headers.extend(
        (name.encode(), _CONTROL.sub(b"?", value.encode())) for name, value in message.headers.items()
    )
    return found


def _start(body: Json) -> Position | None:
    if body is None or body == "earliest":
        return None
    if body == "latest":
        return LATEST
    if isinstance(body, dict):
        found = Position(number(body.get("ledgerId"), '"ledgerId"'), number(body.get("entryId"), '"entryId"'))
        return None if found == EARLIEST else found
    raise InvalidValueError("expected a message id with ledgerId and entryId, or latest or earliest")
