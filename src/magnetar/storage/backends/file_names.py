"""Names of the files in a journal's directory: segments, their indexes, checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backends.journal_backend import index_name, segment_name

_SEGMENT_NAME: Final = re.compile("segment-([0-9a-f]{16})")
_CHECKPOINT_NAME: Final = re.compile("checkpoint-([0-9a-f]{16})")
_KNOWN_NAME: Final = re.compile(
    r"(segment-[0-9a-f]{16}(\.index)?|checkpoint-[0-9a-f]{16}|metadata-[ab]|newest|reserve)(\.new)?"
)


def is_known_name(name: str) -> bool:
    """Whether a file of that name is read or written by a broker; what an operator put beside them is not."""
    return _KNOWN_NAME.fullmatch(name) is not None


def segment_numbers(names: Iterable[str]) -> list[int]:
    """Numbers of the segments among these files, ascending; what an operator put beside them is none."""
    return sorted(int(found[1], 16) for name in names if (found := _SEGMENT_NAME.fullmatch(name)))


def checkpoint_name(number: int) -> str:
    """File name of a checkpoint."""
    return f"checkpoint-{number:016x}"


def checkpoint_names(names: Iterable[str]) -> list[str]:
    """The checkpoints among these files, oldest first."""
    return sorted(name for name in names if _CHECKPOINT_NAME.fullmatch(name))


def checkpoint_numbers(names: Iterable[str]) -> list[int]:
    """Numbers of the checkpoints among these files, ascending."""
    return [int(name.removeprefix("checkpoint-"), 16) for name in checkpoint_names(names)]


def disk_sizes(files: FileSystem, numbers: Iterable[int]) -> dict[int, int]:
    """Bytes of these segments with their indexes; without those that are not there."""
    sizes: dict[int, int] = {}
    for number in numbers:
        for name in (segment_name(number), index_name(number)):
            try:
                file = files.open(name)
            except FileNotFoundError:
                continue
            try:
                sizes[number] = sizes.get(number, 0) + file.size()
            finally:
                file.close()
    return sizes


def remove_segment(files: FileSystem, number: int) -> None:
    """A segment and its index; fine if they are gone already."""
    for name in (index_name(number), segment_name(number)):
        try:
            files.remove(name)
        except FileNotFoundError:
            pass
