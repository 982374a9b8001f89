"""The small facts (tenants, policies, partition counts, schemas) on disk: two copies of one log of changes, as safe as
messages. The lines and what two damaged copies still say are :mod:`magnetar.storage.metadata_log.metadata_scan`'s.

A change is appended to the first copy and synced, then to the second and synced, then it holds; calls are synchronous
and on the event loop's thread, for they are small and rare. Changes that are made together are appended together. A
change that fails leaves memory as it was and is cut off again. Should even that fail, the file is written anew before
the next change, and a crash in between may find the change done: as with a message without a receipt, it may or may not
be there.

The log would grow for ever, so each copy is written anew, without what is superseded, when it is twice as large as what
lives in it: a few lines with each change, so that no change takes long, and renamed into place when it is whole.
"""

from __future__ import annotations

import logging
import secrets
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from magnetar.metadata.store import Record, RecordWrite, Unwatch, Watcher, Watchers, follow_versions
from magnetar.model.errors import MetadataError, PersistenceError
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backends.journal_backend import is_full
from magnetar.storage.metadata_log.metadata_copy import MetadataCopy, Rewriting, directory_secrets, own_secrets
from magnetar.storage.metadata_log.metadata_scan import (
    COPIES,
    Head,
    JoinedCopies,
    MetadataChange,
    NewerFormatError,
    ScannedCopy,
    change_line,
    instance_of,
    is_path,
    read_copy,
    together,
)

log = logging.getLogger(__name__)

SLACK_BYTES: Final = 1 << 20
"""What a copy may hold of superseded lines, beside as much as lives in it."""


class Examined(NamedTuple):
    """What the files say; nothing was changed."""

    facts: JoinedCopies
    instance: int | None
    foreign: list[str]
    """Copies of another broker's metadata."""
    present: list[str]


def examine(files: FileSystem) -> Examined:
    """Read both copies. Raises PersistenceError if a later version wrote them, OSError if none can be read."""
    names = files.names()
    secrets_found = directory_secrets(files)
    contents, unread = _contents(files, [name for name in COPIES if name in names])
    try:
        said = {name: instance_of(data) for name, data in contents.items()}
        known = {number for number in said.values() if number is not None}
        own = own_secrets(secrets_found, known)
        if len(known) > 1 and (not secrets_found or known <= set(secrets_found)):
            raise PersistenceError(
                f"{' and '.join(COPIES)} are of different brokers and nothing else says which is this one's: put the "
                "right one back, or move the wrong one away"
            )
        instance = own[0] if own else None
        foreign = [name for name, number in said.items() if number not in (None, instance)]
        copies: list[ScannedCopy] = []
        for name, data in contents.items():
            if name not in foreign:
                same = copies and data == contents[copies[0].name]  # as a rule they are
                copies.append(replace(copies[0], name=name) if same else read_copy(name, data, instance))
    except NewerFormatError as error:
        raise PersistenceError(f"the metadata of this directory is of {error}") from error
    found = together(copies) if copies else JoinedCopies()
    found.damage += [f"{name} belongs to another broker's directory" for name in foreign]
    found.damage += [f"{name} cannot be read: {error}" for name, error in unread.items()]
    gone = [name for name in COPIES if name not in names]
    established = bool(segment_numbers(names)) or len(gone) < len(COPIES)
    if established:
        # the first writing puts them in place one after the other
        unfinished = gone == [COPIES[1]] and bool(copies) and copies[0].whole and not copies[0].changes
        (found.torn if unfinished else found.damage).extend(f"{name} is missing" for name in gone)
        if not copies:
            found.doubt = "no copy of the metadata is there, but messages are"
    found.mend += [name for name in COPIES if name not in {copy.name for copy in copies}]
    found.aside += [*foreign, *unread]
    return Examined(found, instance, foreign, list(contents))


def _contents(files: FileSystem, names: Iterable[str]) -> tuple[dict[str, bytes], dict[str, OSError]]:
    contents, unread = {}, {}
    for name in names:
        try:
            file = files.open(name)
            try:
                contents[name] = file.read(0, file.size())
            finally:
                file.close()
        except OSError as error:
            unread[name] = error
    if unread and not contents:
        name, first = next(iter(unread.items()))
        raise OSError(first.errno, first.strerror or str(first), name) from first
    return contents, unread


class _Fact(NamedTuple):
    data: bytes
    version: int
    number: int
    """The number of the change that made it what it is."""


class MetadataLog:
    """A :class:`~magnetar.metadata.store.MetadataStore`; the directory must be locked."""

    def __init__(
        self,
        files: FileSystem,
        *,
        imported: Iterable[tuple[str, Record]] | None = None,
    ) -> None:
        """Read the copies and mend them; ``imported`` are the facts of a directory that has none of its own yet.

        Raises PersistenceError, OSError.
        """
        self._files = files
        self.make_room: Callable[[], bool] = _none
        """Called when the disk is full; says whether to try again."""
        self._watchers = Watchers()
        self._facts: dict[str, _Fact] = {}
        self._paths: list[str] = []
        self._lines = 0
        """Bytes of the lines that live."""
        found = examine(files)
        self.damage = list(found.facts.damage)
        self.doubt = found.facts.doubt
        """Why the facts are unknown: nothing may be deleted on their word. None: all is well."""
        self.last = found.facts.last
        born = not found.present and imported is not None
        if born:
            self.damage, self.doubt = [], None
        instance = found.instance
        self.instance = secrets.randbits(32) if instance is None else instance
        for change in found.facts.changes:
            self._apply(change)
        for path, record in imported or () if born else ():
            self.last += 1
            self._apply(MetadataChange(self.last, record.version, path, record.data))
        self._paths = sorted(self._facts)
        self._copies = [MetadataCopy(files, name) for name in COPIES]
        self._rewriting: list[Rewriting] = []
        self._rest_until = 0
        self._tell(found)
        try:
            self._open(found)
        except BaseException:
            self.let_go()
            raise

    def _tell(self, found: Examined) -> None:
        for text in self.damage:
            log.error("metadata: %s; what it held is taken from the other copy where that has it", text)
        for text in found.facts.torn:
            log.warning("metadata: %s: a change that was cut off, its success was not reported to anyone", text)

    def _open(self, found: Examined) -> None:
        """Put aside what is damaged, write anew what is not whole; a disk that refuses that is asked again later."""
        for copy in self._copies:
            with suppress(OSError):
                self._files.remove(copy.name + ".new")
            copy.suspect = copy.name in found.facts.mend
            copy.set_aside = copy.name in found.facts.aside
            if not copy.suspect:
                copy.open()
        if self.last or found.present:
            try:
                self._mend()
            except MetadataError as error:
                log.warning("%s; the other copy is used until that is mended", error)

    # reading -----------------------------------------------------------------------------------------------------

    def get(self, path: str) -> Record | None:
        found = self._facts.get(path)
        return None if found is None else Record(found.data, found.version)

    def children(self, path: str) -> list[str]:
        base, paths = path.rstrip("/") + "/", self._paths
        found: set[str] = set()
        at = bisect_left(paths, base)
        while at < len(paths) and paths[at].startswith(base):
            child, more, _ = paths[at][len(base) :].partition("/")
            found.add(child)
            # what lies below a child need not be looked at: "0" comes after "/"
            at = bisect_left(paths, f"{base}{child}0", at + 1) if more else at + 1
        return sorted(found)

    def watch(self, prefix: str, watcher: Watcher) -> Unwatch:
        return self._watchers.add(prefix, watcher)

    def records(self) -> Iterator[tuple[str, Record]]:
        """All of them, by path."""
        for path in self._paths:
            fact = self._facts[path]
            yield path, Record(fact.data, fact.version)

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def in_both(self) -> bool:
        """Whether both copies on disk are known to hold everything."""
        return not any(copy.suspect for copy in self._copies)

    def durable_copies(self) -> list[tuple[str, int]]:
        """The names of both copies and how much of each is durable and counts. Raises MetadataError."""
        if self.last:
            self._mend()
        return [(copy.name, copy.length) for copy in self._copies if copy.length]

    # changing ----------------------------------------------------------------------------------------------------

    async def put(self, path: str, data: bytes, expected: int | None = None) -> int:
        await self.write([RecordWrite(path, data, expected)])
        return self._facts[path].version

    async def delete(self, path: str, expected: int | None = None) -> None:
        await self.write([RecordWrite(path, None, expected)])

    async def write(self, writes: Sequence[RecordWrite]) -> None:
        for path, data, _ in writes:
            if data is not None and not is_path(path):
                raise MetadataError(f"{path!r} cannot be the path of a metadata record")
        versions = follow_versions(self, writes)
        last = len(writes) - 1
        if writes:
            self._commit(
                [
                    MetadataChange(self.last + 1 + i, versions[i], write.path, write.data, followed=i < last)
                    for i, write in enumerate(writes)
                ]
            )

    def accept(self) -> None:
        """An operator has looked at the facts and takes them as they are. Raises MetadataError."""
        doubt, self.doubt = self.doubt, None
        for copy in self._copies:
            copy.suspect = True
        try:
            self._mend()
        except MetadataError:
            self.doubt = doubt
            raise

    async def close(self) -> None:
        self.let_go()

    def let_go(self) -> None:
        """Close both files."""
        self._stop_rewriting()
        for copy in self._copies:
            copy.close()

    def _commit(self, changes: Sequence[MetadataChange]) -> None:
        lines = b"".join([change_line(change, self.instance) for change in changes])
        try:
            self._write(lines)
        except MetadataError as error:
            if not is_full(error.__cause__) or not self.make_room():
                raise
            self._write(lines)
        for change in changes:
            self.last = change.number
            at = bisect_left(self._paths, change.path)
            if at == len(self._paths) or self._paths[at] != change.path:
                insort(self._paths, change.path)
            self._apply(change, sort=True)
        self._rewrite(lines)
        for change in changes:
            self._watchers.changed(change.path)

    def _write(self, lines: bytes) -> None:
        self._mend()
        written: list[MetadataCopy] = []
        for copy in self._copies:
            written.append(copy)
            try:
                copy.append(lines)
            except OSError as error:
                for one in written:
                    one.undo()
                raise MetadataError(f"cannot write {copy.name}: {error}; nothing was changed") from error

    def _apply(self, change: MetadataChange, *, sort: bool = False) -> None:
        """Apply a change in memory. ``sort``: the path stands in its place already."""
        path = change.path
        # taken out and put in: the dictionary's order is that of the changes
        known = self._facts.pop(path, None)
        if known is not None:
            self._lines -= _size(path, known.data)
        if change.data is None:
            at = bisect_left(self._paths, path) if sort else -1
            if sort and at < len(self._paths) and self._paths[at] == path:
                del self._paths[at]
            return
        self._facts[path] = _Fact(change.data, change.version, change.number)
        self._lines += _size(path, change.data)

    # writing anew ------------------------------------------------------------------------------------------------

    def _head(self) -> Head:
        return Head(self.instance, len(self._facts), self.last, self.doubt)

    def _living(self) -> Iterator[MetadataChange]:
        facts = self._facts.copy()  # as they are now, and made lines of when it is their turn
        return (MetadataChange(fact.number, fact.version, path, fact.data) for path, fact in facts.items())

    def _mend(self) -> None:
        """Write anew, whole and at once, each copy whose file cannot be trusted to end where it should."""
        for copy in self._copies:
            if not copy.in_place():
                log.error("metadata: %s was removed or replaced under the running broker; written anew", copy.name)
                copy.suspect = copy.set_aside = True
        if any(copy.suspect for copy in self._copies):
            self._stop_rewriting()
        for copy in self._copies:
            if copy.suspect:
                rewriting = Rewriting(copy, self._head(), self._living(), len(self._facts))
                try:
                    while not rewriting.step():
                        pass
                except OSError as error:
                    rewriting.stop()
                    raise MetadataError(f"cannot write {copy.name}: {error}; nothing was changed") from error

    def _rewrite(self, lines: bytes) -> None:
        """Go on with writing copies anew, or begin with it if they have grown too much."""
        size = max(copy.length for copy in self._copies)
        if not self._rewriting and size > max(2 * self._lines + SLACK_BYTES, self._rest_until):
            head, count = self._head(), len(self._facts)
            self._rewriting = [Rewriting(copy, head, self._living(), count) for copy in self._copies]
            return
        for one in self._rewriting:
            one.later.append(lines)
        try:
            # one copy at a time: the other one is whole and in place meanwhile
            if self._rewriting and self._rewriting[0].step():
                self._rewriting.pop(0)
        except OSError as error:
            log.warning("metadata cannot be written anew (%s); it goes on in the old file", error)
            self._stop_rewriting()
            self._rest_until = size + SLACK_BYTES

    def _stop_rewriting(self) -> None:
        for one in self._rewriting:
            one.stop()
        self._rewriting.clear()


def _none() -> bool:
    return False


def _size(path: str, data: bytes) -> int:
    return len(path) + len(data) + 32
