"""The topics that exist, by namespace, sorted and ready to be listed (rule 2.16).

Stored and non-persistent ones, loaded or not, every partition for itself. Whatever makes or deletes a topic passes
:class:`magnetar.broker.service.BrokerService`, which says so here; at start all stored names come at once. Topics of
the broker's own stand apart, so no list has to look for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from magnetar.model.names import PARTITION_SUFFIX, Domain, NamespaceName, TopicName
from magnetar.model.sorted_names import SortedNames
from magnetar.model.system_topics import is_system_topic

DOMAINS: Final[tuple[Domain, ...]] = ("non-persistent", "persistent")
"""Names in the order of their topics."""
_NOTHING: Final = SortedNames()

_Place = tuple[str, Domain, bool]
"""Namespace, domain, and whether its topics are the system's."""


class TopicDirectory:
    """The directory of one broker; lives on the event loop."""

    def __init__(self) -> None:
        self._lists: dict[_Place, SortedNames] = {}

    def fill(self, names: Iterable[str]) -> None:
        """Add all stored names at start. A name that is no topic's belongs to the broker itself."""
        found: dict[_Place, list[str]] = {}
        for name in names:
            place = _place(name)
            if place is not None:
                found.setdefault(place, []).append(name)
        for place, together in found.items():
            self._lists[place] = SortedNames(together)

    def add(self, name: TopicName) -> bool:
        """Add a topic; returns whether it is new."""
        place = (name.namespace.text, name.domain, is_system_topic(name))
        names = self._lists.get(place)
        if names is None:
            names = self._lists[place] = SortedNames()
        return names.add(name.fqn)

    def remove(self, name: TopicName) -> bool:
        """Remove a topic; returns whether it was there."""
        place = (name.namespace.text, name.domain, is_system_topic(name))
        names = self._lists.get(place)
        if names is None or not names.discard(name.fqn):
            return False
        if not names:
            del self._lists[place]
        return True

    def users(self, namespace: NamespaceName, domain: Domain) -> SortedNames:
        """The names of users' topics; not to be changed."""
        return self._lists.get((namespace.text, domain, False), _NOTHING)

    def systems(self, namespace: NamespaceName, domain: Domain) -> SortedNames:
        """The names of the broker's own topics; not to be changed."""
        return self._lists.get((namespace.text, domain, True), _NOTHING)

    def count(self, namespace: NamespaceName) -> int:
        """The number of users' topics in both domains."""
        return sum(len(self.users(namespace, domain)) for domain in DOMAINS)

    def pieces(
        self, namespace: NamespaceName, domains: Sequence[Domain] = DOMAINS, *, system: bool
    ) -> list[Sequence[str]]:
        """Names as they are now, sorted, in pieces of some hundred; ``system``: the broker's own among them."""
        found: list[Sequence[str]] = []
        for domain in domains:
            users, systems = self.users(namespace, domain).pieces(), self.systems(namespace, domain)
            found += merged(users, list(systems)) if system and systems else users
        return found

    def partitions_of(self, topic: TopicName) -> list[TopicName]:
        """The partitions of a topic that exist, in the order of their numbers; whatever its number of them is said to
        be."""
        begin = topic.fqn + PARTITION_SUFFIX
        listed = self.systems if is_system_topic(topic) else self.users
        names = map(TopicName.stored, listed(topic.namespace, topic.domain).between(begin, begin + ":"))
        return sorted((name for name in names if name.parent == topic), key=lambda name: name.partition_index)

    def has_partitions(self, topic: TopicName) -> bool:
        """Whether any partition of a topic exists."""
        begin = topic.fqn + PARTITION_SUFFIX
        listed = self.systems if is_system_topic(topic) else self.users
        names = map(TopicName.stored, listed(topic.namespace, topic.domain).between(begin, begin + ":"))
        return any(name.parent == topic for name in names)

    def __iter__(self) -> Iterator[str]:
        """All names."""
        for names in list(self._lists.values()):
            yield from names


def merged(pieces: Sequence[Sequence[str]], few: list[str]) -> list[Sequence[str]]:
    """Merge ``few`` sorted names into very many."""
    found: list[Sequence[str]] = []
    at = 0
    for piece in pieces:
        before = at
        while at < len(few) and few[at] < piece[-1]:
            at += 1
        found.append(sorted((*piece, *few[before:at])) if at > before else piece)
    return [*found, few[at:]] if at < len(few) else found


def _place(name: str) -> _Place | None:
    """The namespace, domain and kind of a name, at a tenth of the cost of parsing it."""
    domain: Domain = "non-persistent" if name.startswith("non-persistent://") else "persistent"
    start = len(domain) + 3
    if not name.startswith("://", len(domain)):
        return None
    parts = name[start:].split("/")
    if len(parts) != 3 or "__" in name or parts[0] == "pulsar":
        topic = TopicName.stored(name)
        return topic.namespace.text, topic.domain, is_system_topic(topic)
    return f"{parts[0]}/{parts[1]}", domain, False
