"""One log in a checkpoint: its JSON, its cursors, what its features keep; written, and judged when it is read.

``u32 length of JSON, JSON, cursors (u32 count, each u32 length + CURSOR body), states of features (u32 count, each u32
length + image)``. Whatever stands there is judged here and nowhere else: types, numbers that no log of ours has,
ledgers and spans that overlap, names and ids that are there twice. So a start takes what :func:`decode` returns as it
is, and ``magnetar verify`` finds in a checkpoint what a start finds. A log of which blocks were lost is whole in this
sense.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.checkpoint_head import UNREADABLE, is_number, require_copy

_U32: Final = struct.Struct("<I")
_FEATURE_STATE: Final = struct.Struct("<HHI")
_LEDGER_VALUES: Final = 8
"""How many values a ledger has at least; its copy follows."""
_SPAN_VALUES: Final = 5
_ORDINALS_BELOW: Final = 1 << 62
_HIDDEN_BELOW: Final = _ORDINALS_BELOW >> 1
"""The log goes on after what it hides."""
_LOST_BELOW: Final = 1 << 32
"""Ordinals that lie in no ledger any more, because their entries were lost."""
_RANGES_BELOW: Final = 1 << 36
"""Ordinals that one cursor's ranges have together: of more the bitmap fits into no memory."""


class CursorImage(NamedTuple):
    """A cursor in a checkpoint."""

    name: str
    properties: dict[str, Any]
    state: cursor_records.CursorState


class FeatureStateImage(NamedTuple):
    """The state of one feature, in a checkpoint."""

    name: str
    snapshot: bytes | None
    changes: Sequence[bytes]
    """After the snapshot, in order."""


class LogImage(NamedTuple):
    """A log in a checkpoint: its JSON part, its cursors and what its features keep."""

    about: dict[str, Any]
    cursors: list[CursorImage]
    feature_states: list[FeatureStateImage]


# writing -------------------------------------------------------------------------------------------------------------


def encode(about: dict[str, Any], cursors: Iterable[bytes], feature_states: Iterable[FeatureStateImage]) -> bytes:
    """One log's part of a checkpoint."""
    text = records.as_json(about).encode()
    parts = [_U32.pack(len(text)), text]
    for bodies in (list(cursors), [_feature_state_bytes(feature_state) for feature_state in feature_states]):
        parts.append(_U32.pack(len(bodies)))
        for body in bodies:
            parts += (_U32.pack(len(body)), body)
    return b"".join(parts)


def _feature_state_bytes(feature_state: FeatureStateImage) -> bytes:
    """A snapshot is the first of the parts; without one the first part is missing and the flag 0."""
    name = feature_state.name.encode()
    datas = [*([] if feature_state.snapshot is None else [feature_state.snapshot]), *feature_state.changes]
    parts = [_FEATURE_STATE.pack(len(name), feature_state.snapshot is not None, len(datas)), name]
    for data in datas:
        parts += (_U32.pack(len(data)), data)
    return b"".join(parts)


# reading -------------------------------------------------------------------------------------------------------------


def decode(blob: bytes) -> LogImage:
    """The inverse of :func:`encode`. Raises RecordError if it is not what a log of ours leaves."""
    try:
        text, at = _sized(blob, 0)
        about = json.loads(text)
        bodies, at = _bodies(blob, at)
        cursors = [_cursor(body) for body in bodies]
        bodies, at = _bodies(blob, at)
        feature_states = [_feature_state(body) for body in bodies]
    except UNREADABLE as error:
        raise records.RecordError(f"a log in the checkpoint cannot be read: {error}") from error
    _require(at == len(blob), "ends before its bytes do")
    _require_about(about)
    for cursor in cursors:
        _require_cursor(cursor, about)
    require_once((cursor.name for cursor in cursors), "cursors of one name")
    require_once((feature_state.name for feature_state in feature_states), "states of one feature")
    return LogImage(about, cursors, feature_states)


def require_once(values: Iterable[Any], what: str) -> None:
    """Raises RecordError if two are equal."""
    listed = list(values)
    if len(set(listed)) < len(listed):
        raise records.RecordError(f"the checkpoint has two {what}")


def _require(good: bool, what: str) -> None:
    if not good:
        raise records.RecordError(f"a log in the checkpoint {what}")


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    """Return what follows its length, and where that ends. Raises struct.error, RecordError."""
    (size,) = _U32.unpack_from(data, at)
    end = at + _U32.size + size
    _require(end <= len(data), "is cut off")
    return data[at + _U32.size : end], end


def _bodies(blob: bytes, at: int) -> tuple[list[bytes], int]:
    """Return counted parts, each of which follows its length, and where they end."""
    (count,) = _U32.unpack_from(blob, at)
    at += _U32.size
    bodies = []
    for _ in range(count):
        body, at = _sized(blob, at)
        bodies.append(body)
    return bodies, at


def _cursor(body: bytes) -> CursorImage:
    text, at = _sized(body, 0)
    about = json.loads(text)
    state, end = cursor_records.parse_cursor_state(body, at)
    _require(end == len(body) and isinstance(about, dict), "has a cursor that is none")
    return CursorImage(about.get("name"), about.get("properties"), state)  # judged with the log


def _feature_state(body: bytes) -> FeatureStateImage:
    size, whole, count = _FEATURE_STATE.unpack_from(body)
    at = _FEATURE_STATE.size + size
    name = body[_FEATURE_STATE.size : at].decode()
    datas = []
    for _ in range(count):
        data, at = _sized(body, at)
        datas.append(data)
    _require(at == len(body) and whole in (0, 1) and whole <= count, "has a feature's state that is none")
    return FeatureStateImage(name, datas[0], datas[1:]) if whole else FeatureStateImage(name, None, datas)


# judging -------------------------------------------------------------------------------------------------------------


def _require_about(about: Any) -> None:
    _require(isinstance(about, dict), "is no JSON object")
    hidden, annexes, end = about.get("hidden", [0, 0]), about.get("annexes"), about.get("end")
    _require_name(about.get("name"), about.get("properties"))
    _require(is_number(about.get("id")) and is_number(about.get("index")), "does not say its numbers")
    _require(is_number(end, _ORDINALS_BELOW), "does not say where it ends")
    good = isinstance(hidden, list) and len(hidden) == 2 and all(map(is_number, hidden))
    # it may be after the end: older versions left it there where entries were lost
    _require(good and hidden[0] < _HIDDEN_BELOW, "hides what it cannot have had")
    _require(annexes == -1 or is_number(annexes), "does not say which blocks its features have")
    before = ordinal = -1
    for values in _rows(about.get("ledgers"), _LEDGER_VALUES):
        ledger, first, entries = values[0], values[1], values[5]
        _require(ledger > before and first >= ordinal, "has ledgers that overlap")
        before, ordinal = ledger, first + entries
        _require(not entries or ordinal <= end, "has a ledger that goes on after its end")
        if len(values) > _LEDGER_VALUES:
            require_copy(values[_LEDGER_VALUES])
    ordinal = 0
    for values in _rows(about.get("spans"), _SPAN_VALUES):
        _require(len(values) == _SPAN_VALUES, _NO_ROW)
        first, after = values[2:4]
        _require(ordinal <= first <= after <= end, "has spans that overlap")
        ordinal = after


def _rows(table: Any, columns: int) -> Iterator[list[Any]]:
    """The rows of a table, each of which begins with so many numbers."""
    _require(isinstance(table, list), "does not list its ledgers and spans")
    for row in table:
        _require(isinstance(row, list) and len(row) >= columns and all(map(is_number, row[:columns])), _NO_ROW)
        yield row


_NO_ROW: Final = "has a ledger or a span that is none"


def _require_cursor(cursor: CursorImage, about: dict[str, Any]) -> None:
    _require_name(cursor.name, cursor.properties)
    state = cursor.state
    _require(state.log == about["id"] and is_number(state.cursor), "has another log's cursor")
    _require(state.mark_delete >= -1, "has a cursor before its beginning")
    before = acked = 0
    for start, stop in state.ranges:
        _require(before <= start < stop <= about["end"], "has a cursor with ranges that overlap")
        before, acked = stop, acked + stop - start
    if acked >= _LOST_BELOW:  # each 4,096 of them take memory, so the log must have had them
        held = sum(values[5] for values in about["ledgers"])
        _require(acked < min(held + _LOST_BELOW, _RANGES_BELOW), "has a cursor with more ranges than there can be")


def _require_name(name: Any, properties: Any) -> None:
    good = isinstance(name, str) and isinstance(properties, dict)
    if good and not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            good = False
    _require(good, "has no name or no properties, or a cursor of it")
