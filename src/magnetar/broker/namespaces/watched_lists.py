"""Lists of a namespace's topics that match a pattern, kept up to date for those who watch them (rule 2.19).

Watchers with the same pattern share one list. A change costs one comparison of each new name with the pattern and, for
the hash, one pass over the names after the change; each watcher gets the same new and deleted names and hash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from magnetar.broker.namespaces.topic_changes import TopicChanges
from magnetar.broker.namespaces.topic_directory import TopicDirectory
from magnetar.model.names import NamespaceName
from magnetar.model.sorted_names import SortedNames
from magnetar.model.topic_pattern import TopicPattern

Update = Callable[[Sequence[str], Sequence[str], str], None]
"""Called with names that are new, names that are gone, and the hash of the whole list."""
_HASH_UNITS: Final = 64
"""Names whose hash costs as much as to compare one name with a pattern."""


class WatchedList:
    """The topics of one namespace that match one pattern."""

    def __init__(self, pattern: TopicPattern, soon: Callable[[Callable[[], None]], None]) -> None:
        self._soon = soon
        self._pattern = pattern
        self.names = SortedNames()
        self.watchers: list[Update] = []
        self._early: list[tuple[Collection[str], Collection[str]]] | None = []
        """Changes that came while the list was made."""
        self.unwatch: Callable[[], None] = _nothing

    def making(self, pieces: Sequence[Sequence[str]]) -> Generator[int, None, None]:
        """Fill the list from all names, in steps that yield how many were compared. Changes may come meanwhile."""
        found: list[str] = []
        for looked_at, some in self._pattern.chosen(chain.from_iterable(pieces)):
            found += some
            yield looked_at
        self.names = SortedNames(found)
        early, self._early = self._early or [], None
        for created, deleted in early:
            self._apply(created, deleted)
        for hashed in self.names.digesting():
            yield hashed // _HASH_UNITS

    def changed(self, created: Collection[str], deleted: Collection[str]) -> None:
        """The namespace's topics have changed."""
        if self._early is not None:
            self._early.append((created, deleted))
            return
        new, gone = self._apply(created, deleted)
        if new or gone:
            digest = self.names.digest()
            for watcher in self.watchers:
                self._soon(partial(self._tell, watcher, new, gone, digest))

    def _tell(self, watcher: Update, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        if watcher in self.watchers:
            watcher(new, gone, digest)

    def _apply(self, created: Collection[str], deleted: Collection[str]) -> tuple[list[str], list[str]]:
        matches, names = self._pattern.matches, self.names
        # stored topics only, as in Apache Pulsar, whatever scheme the pattern names: others are not reported
        new = [name for name in created if matches(name) and names.add(name)]
        return new, [name for name in deleted if names.discard(name)]


class WatchedLists:
    """All watched lists of a broker; lives on the event loop."""

    def __init__(self, directory: TopicDirectory, changes: TopicChanges) -> None:
        self._directory = directory
        self._changes = changes
        self._lists: dict[tuple[str, str], WatchedList] = {}

    def __len__(self) -> int:
        return len(self._lists)

    def watching(self, namespace: NamespaceName, pattern: TopicPattern) -> Generator[int, None, WatchedList]:
        """The list of a pattern, made if it is not watched yet, in steps as :meth:`WatchedList.making`.

        Add a watcher in the same turn, and :meth:`leave` when it goes.
        """
        key = (namespace.text, pattern.text)
        found = self._lists.get(key)
        if found is None:
            made = WatchedList(pattern, self._changes.soon)
            made.unwatch = self._changes.watch(namespace, made.changed)
            try:
                yield from made.making(self._directory.pieces(namespace, ("persistent",), system=True))
            except GeneratorExit:
                made.unwatch()  # the connection is gone
                raise
            found = self._lists.get(key)
            if found is None:
                return self._lists.setdefault(key, made)
            made.unwatch()  # another watcher was quicker
        return found

    def leave(self, watched: WatchedList, watcher: Update) -> None:
        """Remove a watcher; with the last one the list goes."""
        if watcher in watched.watchers:
            watched.watchers.remove(watcher)
        if not watched.watchers:
            unwatch, watched.unwatch = watched.unwatch, _nothing  # it refers to the list
            unwatch()
            self._lists = {key: each for key, each in self._lists.items() if each is not watched}


def _nothing() -> None: ...
