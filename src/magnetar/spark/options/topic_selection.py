"""Which topics are read: named, by pattern, or single partitions; and their topic-partitions at the broker.

A pattern is a namespace and a regular expression for the rest of the name, which must match as a whole. What matches is
asked for again while a stream runs, so topics and partitions that are made later are read from their beginning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from magnetar.client.lookup import Lookup
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError, MagnetarError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.topic_pattern import TopicPattern, without_scheme
from magnetar.spark.options.json_members import json_members


class TopicSelection(NamedTuple):
    names: tuple[str, ...] = ()
    namespace: str = ""
    """The namespace of the pattern."""
    expression: str = ""
    partitions: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Single ones, per topic."""


def topics_by_name(names: Iterable[str]) -> TopicSelection:
    """Select topics by name."""
    return TopicSelection(names=tuple(_full(name.strip()) for name in names))


def topics_by_pattern(text: str) -> TopicSelection:
    """Select topics by ``[persistent://]tenant/namespace/expression``, or an expression alone for public/default."""
    try:
        rest = without_scheme(text).removeprefix("^")
    except InvalidTopicNameError as error:
        raise InvalidValueError(f"option 'topicsPattern': {text!r} cannot be used: {error}") from None
    parts = rest.split("/", 2)
    namespace, expression = ("/".join(parts[:2]), parts[2]) if len(parts) == 3 else ("public/default", rest)
    try:
        found = TopicSelection(namespace=NamespaceName.parse(namespace).text, expression=expression)
    except MagnetarError as error:
        raise InvalidValueError(f"option 'topicsPattern': {namespace!r} is no namespace: {error}") from None
    try:
        TopicPattern(expression)
    except InvalidTopicNameError as error:
        raise InvalidValueError(
            f"option 'topicsPattern': {expression!r} is no regular expression as RE2 has them: {error}"
        ) from None
    return found


def topics_by_partition(text: str) -> TopicSelection:
    """Select partitions by JSON of topics to lists of partition numbers."""
    given = json_members("assign", text)
    numbers = [number for one in given.values() if isinstance(one, list) for number in one]
    if (
        not all(isinstance(one, list) and one for one in given.values())
        or not all(type(number) is int and number >= 0 for number in numbers)
        or not given
    ):
        raise InvalidValueError(f"option 'assign' is {text!r}; it must be JSON as {{\"flights\": [0, 2]}}")
    return TopicSelection(partitions=tuple((_full(name), tuple(sorted(set(one)))) for name, one in given.items()))


def topic_partitions(lookup: Lookup, topics: TopicSelection, *, create: bool) -> list[str]:
    """Return the internal topics that are there now: partitions, or topics that have none; ``create`` makes missing
    ones.

    Each is there once, however often and in whatever spelling the options name it: who reads it twice has every row
    twice.
    """
    found: list[str] = []
    names = list(topics.names)
    if topics.expression:
        names = matching(lookup.topics_of(topics.namespace), topics.namespace, topics.expression)
    for name in names:
        count = lookup.partition_count(name, create=create and not topics.expression)
        found += [one.fqn for one in TopicName.parse(name).partitions(count)] if count else [name]
    for name, numbers in topics.partitions:
        count = lookup.partition_count(name, create=create)
        if numbers[-1] >= max(count, 1):
            have = f"has partitions 0 to {count - 1}" if count else "has no partitions"
            raise InvalidValueError(f"option 'assign' names partition {numbers[-1]} of {name}, which {have}")
        found += [TopicName.parse(name).partition(number).fqn for number in numbers] if count else [name]
    return list(dict.fromkeys(found))


def matching(names: Iterable[str], namespace: str, expression: str) -> list[str]:
    """Return topics of the namespace whose local name matches, partitions as their topic."""
    wanted = TopicPattern(rf"\Q{namespace}\E/(?:{expression})")
    return sorted({TopicName.parse(name).parent.fqn for _, piece in wanted.chosen(names) for name in piece})


def check_known(given: Iterable[str], names: Iterable[str], title: str) -> None:
    """Refuse offsets of topics, or partitions, that are not read; the nearest name is part of the error."""
    known = sorted({*names, *(TopicName.parse(name).parent.fqn for name in names)})
    for name in sorted(given):
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.6)
            hint = f"did you mean {near[0]}?" if near else f"read are {', '.join(known[:20])}"
            raise InvalidValueError(f"option {title!r} names {name}, which is not read; {hint}")


def check_selected(given: Iterable[str], topics: TopicSelection, title: str) -> None:
    """Refuse offsets of topics that are not read, as far as the options say; a broker knows their partitions."""
    parents = {name: TopicName.parse(name).parent.fqn for name in given}
    if topics.expression:
        read = set(matching(parents.values(), topics.namespace, topics.expression))
        if not read and parents:
            raise InvalidValueError(f"option {title!r} names {min(parents)}, which does not match the pattern")
    else:
        read = {*topics.names, *(name for name, _ in topics.partitions)}
    check_known([name for name, parent in parents.items() if parent not in read], read, title)


def _full(text: str) -> str:
    try:
        return TopicName.parse(text).fqn
    except MagnetarError as error:
        raise InvalidValueError(f"{text!r} is no topic: {error}") from None
