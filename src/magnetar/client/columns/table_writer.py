"""Tables to entries: columns checked, values encoded by the producer's schema, rows sent to partitions by their keys.

The columns are those of Spark's sink: ``value``, or with a schema its fields, and what begins with two underscores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.row_router import COLUMNS, Router, Rows
from magnetar.columnar.value_writers import Write, any_valid, is_value, way_of
from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType

_KINDS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "binary": ("binary", pa.types.is_binary),
    "string": ("string", pa.types.is_string),
    "timestamp": ("timestamp", pa.types.is_timestamp),
    "bigint": ("int64, milliseconds", lambda kind: bool(pa.types.is_int64(kind))),
    "int": ("int32", lambda kind: bool(pa.types.is_integer(kind))),
    "map<string,string>": ("map<string, string>", lambda kind: kind == pa.map_(pa.string(), pa.string())),
}
_PLAIN: Final = frozenset({SchemaType.NONE, SchemaType.BYTES})


class TableWriter:
    """Makes rows of one producer's tables; rows without a key go to the partitions in turn, over all its tables."""

    def __init__(
        self,
        topic: str,
        partitions: Callable[[], int],
        definition: SchemaDefinition | None,
        hashing: Callable[[str], int],
        run: int,
        only: float | None = None,
    ) -> None:
        """``run``: how many rows in turn go to one partition. ``only``, from 0 to 1: rows without a key all go to the
        partition there."""
        self._definition = None if definition is None or definition.type in _PLAIN else definition
        if self._definition is not None and self._definition.type is SchemaType.KEY_VALUE:
            raise InvalidValueError(f"{topic}: tables of KEY_VALUE are not written; send its messages one by one")
        self._router = Router(topic, lambda _: partitions(), run=run, hashing=hashing, only=only)
        self._columns: Any = None
        self._write: Write | None = None

    def rows(self, batch: Any) -> Iterator[Rows]:
        """Yield the rows of a pa.RecordBatch by partition. Raises InvalidValueError for columns that cannot be sent,
        and then none of the batch was yielded."""
        if len(set(batch.schema.names)) < len(batch.schema.names):
            twice = sorted({name for name in batch.schema.names if batch.schema.names.count(name) > 1})
            raise InvalidValueError(f"the table has column {', '.join(map(repr, twice))} more than once")
        names = [name for name in batch.schema.names if is_value(name)]
        values = pa.schema([batch.schema.field(name) for name in names])
        if self._columns is None or not self._columns.equals(values):
            self._write = self._written(values)
            self._columns = values
        if self._write is not None:
            columns = {name: batch.column(name) for name in names}
            rest = {name: batch.column(name) for name in batch.schema.names if not is_value(name)}
            batch = pa.RecordBatch.from_pydict({"value": self._write(columns, any_valid(columns)), **rest})
        _check(batch.schema)
        return self._router.split(batch)

    def _written(self, values: Any) -> Write | None:
        if self._definition is not None:
            if not values.names:
                raise InvalidValueError(
                    "the table has no column for the value; names with two underscores are metadata"
                )
            return way_of(self._definition, values)
        if values.names != ["value"]:
            raise InvalidValueError(
                "without a schema a table has one column for the value, 'value'; this one has "
                f"{', '.join(map(repr, values.names)) or 'none'}: give create_producer a schema, or drop columns"
            )
        return None


def _check(schema: Any) -> None:
    for field in schema:
        wanted = COLUMNS.get(field.name)
        if wanted is None or field.name == "__topic":
            known = ", ".join(name for name in COLUMNS if name not in ("value", "__topic"))
            raise InvalidValueError(
                f"column {field.name!r} is none that can be sent; beside the value these are {known}"
            )
        if not any(_KINDS[kind][1](field.type) for kind in wanted):
            kinds = " or ".join(_KINDS[kind][0] for kind in wanted)
            raise InvalidValueError(f"column {field.name!r} is {field.type}; it can be {kinds}")
