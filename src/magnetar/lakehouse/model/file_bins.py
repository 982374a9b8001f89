"""Chooses the small files to merge: those of one partition, in order, up to the target size; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.partition import Values

_SMALL: Final = 0.5
"""A file below this part of the target size is small."""


def bins(files: Iterable[DataFile], target_bytes: int) -> list[list[DataFile]]:
    """Return groups of two files or more; the order of ``files`` is kept within a group."""
    partitions: dict[Values, list[DataFile]] = {}
    for file in files:
        if file.size < target_bytes * _SMALL:
            partitions.setdefault(file.partition, []).append(file)
    found = []
    for small in partitions.values():
        for group in _cut(small, target_bytes):
            # A file that is larger than all after it together waits for more, so that a row is rewritten a few times
            # in its life and not at each compaction.
            while len(group) > 1 and group[0].size > sum(file.size for file in group[1:]):
                group = group[1:]
            if len(group) > 1:
                found.append(group)
    return found


def _cut(files: Sequence[DataFile], target_bytes: int) -> Iterable[list[DataFile]]:
    group: list[DataFile] = []
    for file in files:
        if group and sum(one.size for one in group) + file.size > target_bytes:
            yield group
            group = []
        group.append(file)
    if group:
        yield group
