"""Which files hold the rows of which micro-batches, from a table's log; pure.

A commit of a query adds files. One that removes files and adds others (compaction, or another program's delete or
update) has merged their rows: from then on the rows of all these micro-batches can be compared only in total. So files
fall into groups, each with the micro-batches whose rows must be in it, and no other rows, unless other writers' files
were merged too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class LoggedFile(NamedTuple):
    """A data file, as the log of its table has it."""

    path: str
    places: tuple[str, ...]
    """Where it may stand, relative to the table; the first one that is there counts. Empty: not below the table."""
    size: int
    rows: int | None
    """None if the log does not say."""
    partition: tuple[tuple[str, Any], ...] = ()
    """Columns that are in the path only, each with an Arrow array of its one value."""


class FileCommit(NamedTuple):
    """What one version did to the files."""

    version: int | None
    """None for files from before the history begins, whose origin is unknown."""
    operation: str
    app: str | None
    batch: int | None
    added: tuple[LoggedFile, ...]
    removed: tuple[str, ...]


class FileGroup(NamedTuple):
    """Files whose rows can only be compared together."""

    batches: frozenset[int]
    """Micro-batches of the application that was asked for."""
    others: bool
    """Whether rows of other writers, or of unknown origin, are among them."""
    files: tuple[LoggedFile, ...]
    """Files that are in the table now."""
    rearranged: tuple[int, ...]
    """Versions that removed files of the group."""


def groups(log: Iterable[FileCommit], app: str) -> list[FileGroup]:
    """Return all groups, in the order of their first commits."""
    parents: list[int] = []
    batches: list[set[int]] = []
    others: list[bool] = []
    rearranged: list[set[int]] = []
    owner: dict[str, int] = {}
    live: dict[str, LoggedFile] = {}

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    for commit in log:
        ours = commit.app == app and commit.batch is not None
        index = len(parents)
        parents.append(index)
        batches.append({commit.batch} if ours and commit.batch is not None else set())
        # A commit without an application that removes and adds files moves rows; rows of its own would show as a
        # difference.
        others.append(not ours and bool(commit.added) and (not commit.removed or commit.app is not None))
        rearranged.append({commit.version} if commit.removed and commit.version is not None else set())
        for path in commit.removed:
            live.pop(path, None)
            before = owner.get(path)
            if before is None:
                others[root(index)] = True
                continue
            first, second = sorted((root(before), root(index)))
            if first != second:
                parents[second] = first
                batches[first] |= batches[second]
                rearranged[first] |= rearranged[second]
                others[first] |= others[second]
        for file in commit.added:
            owner[file.path], live[file.path] = index, file
    files: dict[int, list[LoggedFile]] = {}
    for path, file in live.items():
        files.setdefault(root(owner[path]), []).append(file)
    roots = [index for index in range(len(parents)) if root(index) == index]
    return [
        FileGroup(frozenset(batches[one]), others[one], tuple(files.get(one, ())), tuple(sorted(rearranged[one])))
        for one in roots
        if batches[one] or files.get(one)
    ]


def live_files(log: Iterable[FileCommit]) -> list[LoggedFile]:
    """Return the files that are in the table now."""
    found: dict[str, LoggedFile] = {}
    for commit in log:
        for path in commit.removed:
            found.pop(path, None)
        for file in commit.added:
            found[file.path] = file
    return list(found.values())
