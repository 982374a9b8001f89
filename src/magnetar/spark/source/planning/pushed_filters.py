"""Filters that Spark pushes into a batch read: pure, over the names of Spark's filter classes.

They serve three ends. `Pushed.keeps_topic` leaves out topic-partitions. `Pushed.window` says between which entries
and publish times anything can be wanted, so that ranges are made smaller and entries dropped before they are unpacked.
`Pushed.rows` does exactly what Spark would do with the rows, by SQL's logic of three values, before they travel there;
therefore none of these filters is needed by Spark again. What is not understood (nested fields, types with rules of
their own for equality as float) stays with Spark.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same

from magnetar.model.names import TopicName

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LAST: Final = (1 << 63) - 1
_COMPARED: Final = {
    "EqualTo": pc.equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
}
_TEXTUAL: Final = {
    "StringStartsWith": pc.starts_with,
    "StringEndsWith": pc.ends_with,
    "StringContains": pc.match_substring,
}


class Condition(NamedTuple):
    """One of the filters, all of which must be true for a row."""

    column: str
    test: str
    """Name of Spark's class."""
    value: Any
    negated: bool


class Window(NamedTuple):
    """The entries and times that can be wanted, all ends inclusive."""

    first_ledger: int = 0
    last_ledger: int = _LAST
    first_entry: int = 0
    last_entry: int = _LAST
    first_ms: int = -_LAST
    last_ms: int = _LAST

    def keeps(self, ledger: int, entry: int, publish_time: int) -> bool:
        """Return whether rows of that entry can be wanted."""
        return (
            self.first_ledger <= ledger <= self.last_ledger
            and self.first_entry <= entry <= self.last_entry
            and self.first_ms <= publish_time <= self.last_ms
        )


@dataclass(frozen=True, slots=True)
class Pushed:
    """The filters that were understood; without any, everything is kept."""

    conditions: tuple[Condition, ...] = ()
    window: Window = field(default=Window())

    def keeps_topic(self, topic: str) -> bool:
        """Return whether any row of a topic-partition can be wanted."""
        row = {
            "__topic": pa.array([topic], pa.string()),
            "__partition": pa.array([TopicName.parse(topic).partition_index], pa.int32()),
        }
        known = [one for one in self.conditions if one.column in row]
        return all((_truth(row[one.column], one).to_pylist() == [True]) for one in known)

    def rows(self, batch: Any) -> Any:
        """Return the rows of a pa.RecordBatch for which all conditions are true."""
        mask = None
        for one in self.conditions:
            truth = _truth(batch.column(one.column), one)
            mask = truth if mask is None else pc.and_kleene(mask, truth)
        return batch if mask is None else batch.filter(mask, null_selection_behavior="drop")


EVERYTHING: Final = Pushed()


def understood(filters: Sequence[Any], schema: Any) -> tuple[Pushed, list[Any]]:
    """Split Spark's filters over a pa.Schema into what is applied here and the filters that Spark has to apply
    itself."""
    conditions, left = [], []
    for one in filters:
        condition = _condition(one, schema)
        if condition is None:
            left.append(one)
        else:
            conditions.append(condition)
    return Pushed(tuple(conditions), _window(conditions)), left


def _condition(given: Any, schema: Any) -> Condition | None:
    negated = type(given).__name__ == "Not"
    one = given.child if negated else given
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1 or path[0] not in schema.names:
        return None
    kind = schema.field(path[0]).type
    plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or kind in (pa.string(), pa.binary(), pa.date32())
    if not plain and not pa.types.is_timestamp(kind):
        return None
    condition = Condition(path[0], type(one).__name__, getattr(one, "value", None), negated)
    try:
        _truth(pa.array([], kind), condition)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError):
        return None
    return condition


def _truth(column: Any, one: Condition) -> Any:
    """Return true, false or null for each element. Raises KeyError or pa.ArrowException for what is not understood."""
    kind = column.type
    if one.test == "IsNull":
        found = pc.is_null(column)
    elif one.test == "IsNotNull":
        found = pc.is_valid(column)
    elif one.test == "EqualNullSafe":
        same = pc.is_null(column) if one.value is None else pc.equal(column, pa.scalar(one.value, kind))
        found = pc.fill_null(same, False)
    elif one.test == "In":
        found = _in(column, [*one.value])
    elif one.test in _TEXTUAL:
        if kind != pa.string():
            raise KeyError(one.test)
        found = _TEXTUAL[one.test](column, one.value)
    else:
        found = _COMPARED[one.test](column, pa.scalar(one.value, kind))
    return pc.invert(found) if one.negated else found


def _in(column: Any, values: list[Any]) -> Any:
    """Evaluate IN: null IN anything is null, and so is what is not found in a list with a null."""
    known = pa.array([value for value in values if value is not None], column.type)
    null = pa.scalar(None, pa.bool_())
    found = pc.is_in(column, value_set=known)
    if len(known) < len(values):
        found = pc.if_else(found, True, null)
    return pc.if_else(pc.is_null(column), null, found)


def _window(conditions: Iterable[Condition]) -> Window:
    spans = {"__ledgerId": (0, _LAST), "__entryId": (0, _LAST), "__publishTime": (-_LAST, _LAST)}
    for one in conditions:
        if one.column in spans:
            low, high = spans[one.column]
            first, last = _span(one)
            spans[one.column] = max(low, first), min(high, last)
    first_us, last_us = spans["__publishTime"]
    # Publish times are whole milliseconds, and "none" is the first of them.
    times = max(-(-first_us // 1000), -_LAST), last_us // 1000
    return Window(*spans["__ledgerId"], *spans["__entryId"], *times)


_NARROWING: Final = frozenset(
    {"EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"}
)


def _span(one: Condition) -> tuple[int, int]:
    """Return between which numbers (for times microseconds) a condition can be true."""
    if one.negated:
        return -_LAST, _LAST
    if one.test == "In":
        numbers = [_number(value) for value in one.value if value is not None]
        return (min(numbers), max(numbers)) if numbers else (1, 0)
    if one.value is None or one.test not in _NARROWING:
        return -_LAST, _LAST
    number = _number(one.value)
    if one.test in ("EqualTo", "EqualNullSafe"):
        return number, number
    if one.test in ("GreaterThan", "GreaterThanOrEqual"):
        return number + (one.test == "GreaterThan"), _LAST
    return -_LAST, number - (one.test == "LessThan")


def _number(value: Any) -> int:
    return int((value - _EPOCH) / dt.timedelta(microseconds=1)) if isinstance(value, dt.datetime) else int(value)
