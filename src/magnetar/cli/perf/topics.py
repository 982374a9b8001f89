"""The topics of a test: their names, and their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName

if TYPE_CHECKING:
    from magnetar.client.rest import Rest

CONFLICT = 409


def topic_names(given: Sequence[str], count: int, separator: str = "-") -> list[str]:
    """Return the topics: those that were given, or ``count`` numbered ones of one name. Raises InvalidValueError."""
    if count < 1:
        raise InvalidValueError("--num-topics is 1 at least")
    if len(given) == count:
        return list(given)
    if len(given) != 1:
        raise InvalidValueError(f"{len(given)} topics are given, --num-topics says {count}; give one name or {count}")
    name = TopicName.parse(given[0]).fqn
    return [f"{name}{separator}{number}" for number in range(count)]


def make_partitions(rest: Rest, topics: Sequence[str], count: int) -> None:
    """Create partitioned topics; those that exist must have as many. Raises RestRefusedError, InvalidValueError."""
    from magnetar.client.rest import RestRefusedError, path_of

    for topic in topics:
        try:
            rest.ask("PUT", f"{path_of(topic)}/partitions", count)
        except RestRefusedError as error:
            if error.http_status != CONFLICT:
                raise
            found = rest.ask("GET", f"{path_of(topic)}/partitions")["partitions"]
            if found != count:
                raise InvalidValueError(f"{topic} exists with {found} partitions, and not {count}") from None
