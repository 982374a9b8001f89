"""What the calls of inbox, outbox and relay take; the errors about what does not fit it name the parameter."""

from __future__ import annotations

from typing import Any, Final

from magnetar.client.arguments import kinds
from magnetar.client.arguments.expected_argument import ExpectedArgument, check_all
from magnetar.client.arguments.kinds import INT32_MAX, INT64_MAX, SECONDS_MAX
from magnetar.client.databases.sql_dialect import SqlDialect, table_name
from magnetar.model.names import TopicName


def _is_connection(given: Any) -> bool:
    return not isinstance(given, type) and callable(given.cursor) and callable(given.commit)


def _is_message(given: Any) -> bool:
    return not isinstance(given, type) and callable(given.message_id) and callable(given.publish_timestamp)


_MILLIS: Final = kinds.whole(0, INT64_MAX, "milliseconds since 1970")
_PARAMETERS: Final[dict[str, ExpectedArgument]] = {
    "dialect": kinds.instance("SQLITE or POSTGRESQL", SqlDialect),
    "table": ExpectedArgument(
        "the plain name of a table", lambda given: isinstance(given, str) and bool(table_name(given))
    ),
    "connection": ExpectedArgument("a connection of the database (DB-API 2.0)", _is_connection),
    "subscription": kinds.text("the name of a subscription"),
    "message": ExpectedArgument("a message that was received", _is_message),
    "published_before_ms": _MILLIS,
    "topic": ExpectedArgument("the name of a topic", lambda given: isinstance(given, str) and _is_topic(given)),
    "content": kinds.instance("bytes, encoded from what it is about,", bytes),
    "properties": kinds.properties().or_none(),
    "partition_key": ExpectedArgument("a text", kinds.is_text).or_none(),
    "event_timestamp": _MILLIS.or_none(),
    "deliver_at": _MILLIS.or_none(),
    "limit": kinds.whole(1, INT32_MAX),
    "client": ExpectedArgument(
        "an asyncio client", lambda given: not isinstance(given, type) and callable(given.create_producer)
    ),
    "connect": kinds.function("a function that returns a new connection of the database"),
    "producer_name": kinds.text("a name, the same for ever,"),
    "poll_seconds": kinds.number(0, SECONDS_MAX, "seconds", above=True),
}


def _is_topic(given: str) -> bool:
    """Raises InvalidTopicNameError."""
    return bool(TopicName.parse(given))


def checked(where: str, **given: object) -> None:
    """Check the arguments of one call, ``where``. Raises ArgumentError."""
    check_all(_PARAMETERS, given, where)
