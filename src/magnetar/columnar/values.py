"""The seam between messages and columns: bytes of values in, typed Arrow arrays out.

A `Values` knows one reader's schema and reads values by it; it never raises because of a value, but says which rows it
could not read and why. `ValueDecoder` decides what becomes of those: the query fails, the row is null, or the row is
null and two more columns hold the cause and the original bytes, so that a pipeline can put them on a dead-letter topic.

A value that is null (a tombstone) is null in every column. All columns can be null, as Spark's types here can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import InvalidValueError

Runs: TypeAlias = Sequence[tuple[int, bytes | None]]
"""Number of messages and schema version (as on the wire, None: none) of one entry after the other."""

ERROR_COLUMN: Final = "__decodeError"
RAW_COLUMN: Final = "__rawValue"
ERRORS: Final = ("fail", "null", "column")
"""What may become of a value that cannot be read."""
NEW_SCHEMAS: Final = ("fail", "ignore", "raw")
"""What may become of values whose writer's schema cannot be read as the reader's: null, or null and shown raw."""


class UnreadableValue(NamedTuple):
    """A value that does not fit."""

    row: int
    reason: str
    """Which field, versions and rule do not fit."""
    new_schema: bool = False
    """The writer's whole schema is the reason, not this value."""


class Decoded(NamedTuple):
    columns: list[Any]
    """One Arrow array for each field of the schema, each as long as the values; null where unreadable."""
    unreadable: list[UnreadableValue]
    """The values that do not fit, in order of rows."""


class Values(Protocol):
    """One way to read values."""

    schema: Any
    """pa.Schema: ``value`` alone, or a record's fields one by one, or ``key`` and ``value``; all nullable."""
    needs_keys: bool
    """Whether the messages' keys are part of it (KEY_VALUE, SEPARATED)."""
    record: bool
    """Whether the columns are fields of one record."""

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode values. ``values`` (and ``keys``) are pa.BinaryArrays; ``runs`` cover all of them."""
        ...


class UndecodableError(InvalidValueError):
    """A value cannot be read; the caller that knows its message id adds that."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        """Its place among the values that were given."""
        self.reason = reason


class ValueDecoder:
    """What sources use: a `Values`, and what becomes of values that do not fit (one of `ERRORS`)."""

    def __init__(self, values: Values, on_error: str = "fail", on_new_schema: str = "fail") -> None:
        self._values = values
        self._fails = {False: on_error == "fail", True: on_new_schema == "fail"}
        self._shown = {False: on_error == "column", True: on_new_schema == "raw"}
        self._shows = any(self._shown.values())
        self.needs_keys = values.needs_keys
        self.schema: Any = with_error_columns(values.schema) if self._shows else values.schema
        """pa.Schema of what `decode` gives."""

    def decode(self, values: Any, runs: Runs, keys: Any = None) -> list[Any]:
        """Return Arrow arrays, one for each field of the schema. Raises UndecodableError if that is what was chosen."""
        columns, unreadable = self._values.read(values, runs, keys)
        for one in unreadable:
            if self._fails[one.new_schema]:
                raise UndecodableError(one.row, one.reason)
        shown = [one for one in unreadable if self._shown[one.new_schema]]
        return [*columns, *_error_columns(values, shown)] if self._shows else columns


def with_error_columns(schema: Any) -> Any:
    """Return a schema with the two columns about values that could not be read."""
    return schema.append(pa.field(ERROR_COLUMN, pa.string())).append(pa.field(RAW_COLUMN, pa.binary()))


def _error_columns(values: Any, unreadable: list[UnreadableValue]) -> list[Any]:
    if not unreadable:
        return [pa.nulls(len(values), pa.string()), pa.nulls(len(values), pa.binary())]
    reasons: list[str | None] = [None] * len(values)
    raw: list[bytes | None] = [None] * len(values)
    for row, reason, _ in unreadable:
        reasons[row] = reason
        raw[row] = values[row].as_py()
    return [pa.array(reasons, pa.string()), pa.array(raw, pa.binary())]


class Binary:
    """Reads values as they are."""

    schema: Any = pa.schema([pa.field("value", pa.binary())])
    needs_keys = False
    record = False

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Return the values; nothing can be wrong with them."""
        return Decoded([values], [])


class Text:
    """Reads values as UTF-8."""

    schema: Any = pa.schema([pa.field("value", pa.string())])
    needs_keys = False
    record = False

    def read(self, values: Any, runs: Runs, keys: Any = None) -> Decoded:
        """Decode the values; what is no UTF-8 is unreadable."""
        try:
            return Decoded([values.cast(pa.string())], [])
        except pa.ArrowInvalid:
            pass
        texts: list[str | None] = []
        unreadable = []
        for row, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else value.decode())
            except UnicodeDecodeError as error:
                texts.append(None)
                unreadable.append(
                    UnreadableValue(
                        row, f"no UTF-8 text ({error.reason} at byte {error.start}); read it with value=binary"
                    )
                )
        return Decoded([pa.array(texts, pa.string())], unreadable)
