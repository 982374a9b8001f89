"""A checkpoint's head: what its first bytes say of the whole, and whether this version may read the rest.

Whatever stands there is judged: a head of ours, one of a newer version, one of another broker's directory, or damage. A
checksum that matches is no reason to trust what follows it: any program may have put the file there.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from crc32c import crc32c

from magnetar.model.errors import PersistenceError
from magnetar.storage.log import records

MAGIC: Final = b"MGTRCKP1"
FORMAT: Final = 2
"""The format of the whole directory; without the number it is 1. 2: extents that were moved."""
START_BYTES: Final = 64 << 10
"""More than a head has, unless very many copies of ledgers wait for their deletion."""

_U32: Final = struct.Struct("<I")
_NUMBERS_BELOW: Final = 1 << 63
_FORMATS_BELOW: Final = 1 << 16
_COUNTS: Final = ("segment", "length", "sequence")
UNREADABLE: Final = (ValueError, RecursionError, struct.error)
"""What taking bytes apart raises."""
_COPY_WORDS: Final = 3
_COPY_VALUES: Final = 7
"""Words and numbers; whether the local entries are released may follow."""


def is_number(value: object, below: int = _NUMBERS_BELOW) -> bool:
    """Whether that is a number that we write; JSON has others."""
    return type(value) is int and 0 <= value < below


def format_in(start: bytes) -> int | None:
    """The format that the first bytes name, whole or not, ours or not; None if they are too few or say nothing."""
    try:
        head, _ = _parse(start)
        found = head.get("format", 1)
    except records.RecordError:
        return None
    return found if is_number(found, _FORMATS_BELOW) else None


def head_of(data: bytes, owner: int | None = None) -> tuple[dict[str, Any], int]:
    """The head of a whole checkpoint, and where it ends.

    Raises RecordError if the bytes are not a whole one, or if another directory's broker wrote them than ``owner``,
    this one's secret; PersistenceError if they are of a newer format: what stands after the head may then look like
    damage, and is none.
    """
    if len(data) < 16 or _U32.unpack(data[-4:])[0] != crc32c(data[:-4]):
        raise records.RecordError("the checkpoint's checksum does not match")
    head, end = _parse(data[:-4])
    require_owner(head, owner)
    written = head.get("format", 1)
    if not is_number(written, _FORMATS_BELOW):
        raise records.RecordError("the checkpoint's head names no format")
    if written > FORMAT:
        raise PersistenceError(
            f"the directory was written by a newer version of magnetar (format {written}, this one knows up to "
            f"{FORMAT}): use that version; nothing was changed"
        )
    ids, discarded = head.get("ids"), head.get("discarded", [])
    _require(all(is_number(head.get(name)) for name in _COUNTS), "its numbers")
    _require(is_number(head.get("secret"), 1 << 32), "its secret")
    _require(isinstance(ids, list) and len(ids) == 3 and all(map(is_number, ids)), "its ids")
    _require(isinstance(discarded, list), "what is to be deleted")
    for copy in discarded:
        require_copy(copy)
    return head, end


def require_owner(head: dict[str, Any], owner: int | None) -> None:
    """Raises RecordError if another directory's broker wrote it."""
    if owner is not None and head.get("secret", owner) != owner:
        raise records.RecordError("it belongs to another broker's directory")


def _require(good: bool, what: str) -> None:
    if not good:
        raise records.RecordError(f"the checkpoint's head does not say {what}")


def require_copy(values: Any) -> None:
    """Raises RecordError if that is not what is kept of a ledger's copy; a later version may have appended more."""
    if not (
        isinstance(values, list)
        and len(values) >= _COPY_VALUES
        and all(isinstance(word, str) for word in values[:_COPY_WORDS])
        and all(map(is_number, values[_COPY_WORDS:_COPY_VALUES]))
        and all(isinstance(flag, bool) for flag in values[_COPY_VALUES : _COPY_VALUES + 1])
    ):
        raise records.RecordError("the checkpoint names a copy of a ledger that is none")


def _parse(data: bytes) -> tuple[dict[str, Any], int]:
    try:
        (size,) = _U32.unpack_from(data, len(MAGIC))
        end = len(MAGIC) + _U32.size + size
        if not data.startswith(MAGIC) or end > len(data):
            raise records.RecordError("it does not begin as a checkpoint does")
        head = json.loads(data[end - size : end])
    except UNREADABLE as error:
        raise records.RecordError(f"the checkpoint's head cannot be read: {error}") from error
    if not isinstance(head, dict):
        raise records.RecordError("the checkpoint's head is no JSON object")
    return head, end
