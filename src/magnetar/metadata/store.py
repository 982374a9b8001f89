"""The seam to whatever keeps the facts: paths to bytes, each with a version.

Paths look like ``/tenants/public``; no empty parts. A record's version is 0 when it is created and grows by one with
each write.

Reads are answered at once, from a copy in memory that follows the store: they may stand in the path of every command.
Writes may wait for a disk or a network; they are durable when they return, and the copy, with everybody who watches it,
knows of them by then. A write names the version it was made from, so that two writers cannot undo each other: what was
read before an ``await`` may be old after it. Several writes that belong together are all made or none, whatever the
disk refuses and wherever the power is cut. Used from the event loop's thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from magnetar.model.errors import BadVersionError, NotFoundError

log = logging.getLogger(__name__)

ABSENT: Final = -1
"""The expected version of a record that must not exist yet."""


class Record(NamedTuple):
    """What stands at a path."""

    data: bytes
    version: int


class RecordWrite(NamedTuple):
    """One of several changes that are made together. ``data`` None: the record is removed."""

    path: str
    data: bytes | None
    expected: int | None = None
    """The version that the record must have; None: any, ABSENT: none may be there."""


Watcher = Callable[[str], None]
Unwatch = Callable[[], None]


class MetadataStore(Protocol):
    """Keeper of small facts."""

    def get(self, path: str) -> Record | None:
        """The record at ``path``, if any."""
        ...

    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        """Write and return the new version. Raises BadVersionError unless the record has version ``expected``.

        ``None`` accepts whatever is there, :data:`ABSENT` only nothing.
        """
        ...

    async def delete(self, path: str, expected: int | None = None) -> None:
        """Remove. Raises NotFoundError if there is nothing, BadVersionError as in :meth:`put`."""
        ...

    async def write(self, writes: Sequence[RecordWrite]) -> None:
        """Make all these changes, each after those before it, or none of them. Raises as :meth:`put` and
        :meth:`delete` do."""
        ...

    def children(self, path: str) -> list[str]:
        """The next part of every path below ``path``, each once, sorted; they need not be records themselves."""
        ...

    def watch(self, prefix: str, watcher: Watcher) -> Unwatch:
        """Call ``watcher(path)`` after every change at or below ``prefix`` until the result is called."""
        ...

    async def close(self) -> None:
        """Release everything; the store cannot be used afterwards."""
        ...


def follow_versions(store: MetadataStore, writes: Sequence[RecordWrite]) -> list[int]:
    """Return the version of each record after its write; of one that is removed, the version that it had.

    Raises BadVersionError or NotFoundError for the first write that cannot be made after those before it.
    """
    known: dict[str, int] = {}
    versions = []
    for path, data, expected in writes:
        if (found := known.get(path)) is None:
            record = store.get(path)
            found = ABSENT if record is None else record.version
        if data is None and found == ABSENT:
            raise NotFoundError(f"{path} does not exist")
        if expected is not None and expected != found:
            raise BadVersionError(f"{path} has version {found}, not {expected}")
        versions.append(found if data is None else found + 1)
        known[path] = ABSENT if data is None else found + 1
    return versions


class Watchers:
    """The watching part of a store; a watcher that fails is logged and does not undo the write."""

    def __init__(self) -> None:
        self._watchers: list[tuple[str, Watcher]] = []

    def add(self, prefix: str, watcher: Watcher) -> Unwatch:
        entry = (prefix, watcher)
        self._watchers.append(entry)

        def unwatch() -> None:
            if entry in self._watchers:
                self._watchers.remove(entry)

        return unwatch

    def changed(self, path: str) -> None:
        """Tell everyone who watches ``path`` or something above it."""
        for prefix, watcher in list(self._watchers):
            if path == prefix or path.startswith(prefix.rstrip("/") + "/"):
                try:
                    watcher(path)
                except Exception:
                    log.exception("a watcher of %s failed on the change of %s", prefix, path)
