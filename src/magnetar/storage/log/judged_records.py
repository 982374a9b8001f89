"""What a record of the log says, judged: a checksum that matches is no reason to trust what it covers.

Each function returns what one kind of record says and raises RecordError for what no record of ours says: fields that
are missing or of another type, numbers that no log has, tables that do not fit. A start leaves such a record out and
names it, ``magnetar verify`` names it, too. Whether it agrees with what is known of its log is judged where it is
replayed. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from magnetar.model.errors import PersistenceError
from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.checkpoint_head import UNREADABLE, require_copy
from magnetar.storage.log.records import RecordKind

NUMBERS_BELOW: Final = 1 << 63
"""Ordinals, ids, message indexes: more than any log has, and room for those that follow the largest one."""


def judge(raw: records.RawRecord) -> None:
    """Raises RecordError for a record that no broker writes, PersistenceError for one of a newer version."""
    _READ.get(raw.kind, _newer)(raw)


def extent_of(raw: records.RawRecord) -> records.ExtentHead:
    """The head of an extent whose tables and entries fill its body. Raises as :func:`judge` does."""
    if raw.flags & ~records.EXTENT_FLAGS:
        raise _flags_error(raw)
    body = raw.body
    try:
        head = records.extent_head(body)
        n = head.entries
        # every extent of a start comes here: no more calls than are needed
        tables = n if not raw.flags & records.COUNTED else 2 * n
        numbers = struct.unpack_from(f"<{tables}I", body, records.EXTENT_HEAD_SIZE)
    except struct.error:
        raise records.RecordError("an extent that is shorter than its tables") from None
    size, messages = (sum(numbers), n) if tables == n else (sum(numbers[:n]), sum(numbers[n:]))
    _require(n > 0, "an extent without entries")
    _require(records.EXTENT_HEAD_SIZE + 4 * tables + size == len(body), "an extent whose entries do not fill it")
    _require(
        head.entry <= head.ordinal <= NUMBERS_BELOW - n
        and head.message_index <= NUMBERS_BELOW - messages
        and head.log < NUMBERS_BELOW and head.ledger < NUMBERS_BELOW and head.published_ms < NUMBERS_BELOW,
        "an extent with numbers that no log has",
    )  # fmt: skip
    return head


def acks_of(raw: records.RawRecord) -> cursor_records.CursorState:
    """What an ACKS record adds to its cursor. Raises as :func:`judge` does."""
    if raw.flags:
        raise _flags_error(raw)
    try:
        state, end = cursor_records.parse_cursor_state(raw.body)
    except struct.error:
        raise records.RecordError("acknowledgements that are cut off") from None
    _require_state(state, end == len(raw.body))
    return state


def cursor_of(raw: records.RawRecord) -> tuple[str, dict[str, Any], cursor_records.CursorState]:
    """Name, properties and whole state of a cursor. Raises as :func:`judge` does."""
    if raw.flags:
        raise _flags_error(raw)
    try:
        name, properties, state, end = cursor_records.parse_cursor_record(raw.body)
    except (*UNREADABLE, KeyError, TypeError):
        raise records.RecordError("a cursor that cannot be read") from None
    _require_name(name, properties)
    _require_state(state, end == len(raw.body))
    return name, properties, state


def feature_state_of(raw: records.RawRecord) -> tuple[int, str, bytes]:
    """Log, name and data of what a feature keeps. Raises as :func:`judge` does."""
    if raw.flags:
        raise _flags_error(raw)
    try:
        log, name, data = records.parse_feature_state(raw.body)
    except UNREADABLE:
        raise records.RecordError("a feature's state that cannot be read") from None
    _require(log < NUMBERS_BELOW, "a feature's state of a log that cannot be")
    return log, name, data


def fields_of(raw: records.RawRecord) -> dict[str, Any]:
    """The fields of a rare record. Raises as :func:`judge` does."""
    wanted = _FIELDS.get(raw.kind)
    if wanted is None:
        raise _newer_error(f"a record of kind {raw.kind}")
    if raw.flags:
        raise _flags_error(raw)
    try:
        fields: dict[str, Any] = records.from_json(raw.body)
    except UNREADABLE:
        raise records.RecordError("a record that is no JSON") from None
    _require(type(fields) is dict, "a record that is no JSON object")
    for name, is_good in wanted.items():
        value = fields.get(name)
        # a start asks for six counts of each topic: no call for what they are
        if not (type(value) is int and 0 <= value < NUMBERS_BELOW if is_good is _is_count else is_good(value)):
            raise records.RecordError(f"a record of kind {raw.kind} without a sound {name!r}")
    return fields


def _require(good: bool, what: str) -> None:
    if not good:
        raise records.RecordError(what)


def _newer(raw: records.RawRecord) -> None:
    raise _newer_error(f"a record of kind {raw.kind}")


def _flags_error(raw: records.RawRecord) -> PersistenceError:
    return _newer_error(f"a record of kind {raw.kind} with flags {raw.flags:#x}")


def _newer_error(what: str) -> PersistenceError:
    return PersistenceError(f"{what}: the directory was written by a newer version of magnetar")


def _require_state(state: cursor_records.CursorState, whole: bool) -> None:
    log, cursor, mark, ranges, partial = state
    _require(whole, "a cursor's state that ends before its bytes do")
    _require(log < NUMBERS_BELOW and cursor < NUMBERS_BELOW and mark >= -1, "a cursor with numbers that none has")
    before = 0
    for start, stop in ranges:
        _require(before <= start < stop <= NUMBERS_BELOW, "a cursor with ranges that overlap")
        before = stop
    for ordinal, _ in partial:
        _require(ordinal < NUMBERS_BELOW, "a cursor with a batch that no log has")


def _require_name(name: Any, properties: Any) -> None:
    _require(_is_text(name) and isinstance(properties, dict), "a name or properties that are none")


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < NUMBERS_BELOW


def _is_count_or_missing(value: Any) -> bool:
    return value is None or _is_count(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_copy(value: Any) -> bool:
    try:
        require_copy(value)
    except records.RecordError:
        return False
    return True


_FIELDS: Final[dict[int, dict[str, Callable[[Any], bool]]]] = {
    RecordKind.LOG: {"log": _is_count, "name": _is_text, "properties": _is_object},
    RecordKind.LOG_DELETED: {"log": _is_count},
    RecordKind.LEDGER: dict.fromkeys(("log", "ledger", "ordinal", "index", "ms"), _is_count),
    RecordKind.TRIMMED: {"log": _is_count, "ordinal": _is_count, "bytes": _is_count_or_missing},
    RecordKind.CURSOR_DELETED: {"log": _is_count, "cursor": _is_count},
    RecordKind.OFFLOADED: {"log": _is_count, "ledger": _is_count, "offload": _is_copy},
    RecordKind.COPY_BEGUN: {"offload": _is_copy},
    RecordKind.COPY_DELETED: {"key": _is_text},
}
"""What each kind of rare record has to hold, with the function that checks it."""
_READ: Final[dict[int, Callable[[records.RawRecord], object]]] = {
    RecordKind.EXTENT: extent_of,
    RecordKind.CURSOR: cursor_of,
    RecordKind.ACKS: acks_of,
    RecordKind.FEATURE_STATE: feature_state_of,
    RecordKind.FEATURE_STATE_CHANGE: feature_state_of,
    RecordKind.FEATURE_STATE_REMOVED: feature_state_of,
    **dict.fromkeys(_FIELDS, fields_of),
}
