"""Finds the schema that the writers of some values had, by the version that stands in each entry.

The reader asks the registry (`SchemaLookup`); a value without a version was written by a client without a
schema, and is taken for one of the reader's own. Values of one version are read together and then put back in their
order, so versions that alternate cost little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.values import Decoded, Runs, UnreadableValue
from magnetar.model.schemas import SchemaDefinition, SchemaType

if TYPE_CHECKING:
    from numpy.typing import NDArray

SchemaLookup: TypeAlias = Callable[[bytes], SchemaDefinition]
"""A version as on the wire to its schema. Raises MagnetarError if there is none."""


def version_text(version: bytes | None) -> str:
    """Return the version for error texts."""
    if version is None:
        return "none"
    return str(int.from_bytes(version, "big", signed=True)) if len(version) == 8 else version.hex()


def groups(runs: Runs) -> Iterator[tuple[bytes | None, NDArray[np.int64] | None]]:
    """Return each version and the rows that have it; None for the rows if all have."""
    # Empty is "none", too (rule 10.3).
    runs = [(count, version or None) for count, version in runs]
    versions = list(dict.fromkeys(version for count, version in runs if count))
    if len(versions) == 1:
        yield versions[0], None
        return
    numbers = {version: number for number, version in enumerate(versions)}
    counts = np.array([count for count, _ in runs if count], np.int64)
    of_rows = np.repeat(np.array([numbers[version] for count, version in runs if count], np.int64), counts)
    for version, number in numbers.items():
        yield version, np.flatnonzero(of_rows == number)


def by_version(values: Any, runs: Runs, schema: Any, read: Callable[[bytes | None, Any], Decoded]) -> Decoded:
    """Call ``read`` with the values of each version, and return the results in the order of ``values``."""
    parts: list[Decoded] = []
    order: list[NDArray[np.int64]] = []
    for version, rows in groups(runs):
        if rows is None:
            return read(version, values)
        part = read(version, values.take(pa.array(rows)))
        parts.append(part)
        order.append(rows)
    if not parts:
        return Decoded([pa.array([], field.type) for field in schema], [])
    back = pa.array(np.argsort(np.concatenate(order), kind="stable"))
    columns = [pa.concat_arrays([part.columns[index] for part in parts]).take(back) for index in range(len(schema))]
    unreadable = [
        one._replace(row=int(rows[one.row])) for part, rows in zip(parts, order, strict=True) for one in part.unreadable
    ]
    return Decoded(columns, sorted(unreadable, key=lambda one: one.row))


class WritersType:
    """Checks the writers of values in which fields are found by name or number, whatever schema they had.

    Their writers' schemas matter by their type, and by what ``cannot`` says of them.
    """

    def __init__(
        self,
        writers: SchemaLookup | None,
        types: Collection[SchemaType],
        label: str,
        cannot: Callable[[SchemaDefinition], str | None] = lambda _: None,
    ) -> None:
        """``label``: the reader's schema, for people; without ``writers`` every value may be read.

        ``cannot``: why values of a schema cannot be read as the reader's, asked once per version.
        """
        self._writers = writers
        self._types = types
        self._label = label
        self._cannot = cannot
        self._known: dict[bytes, str | None] = {}

    def read(self, values: Any, runs: Runs, schema: Any, read: Callable[[Any], Decoded]) -> Decoded:
        """Call ``read`` with the values of each version whose type is one of ours; others have no value."""
        writers = self._writers
        if writers is None:
            return read(values)

        def read_version(version: bytes | None, values: Any) -> Decoded:
            if version is None:
                return read(values)
            if version not in self._known:
                self._known[version] = self._reason(writers(version))
            reason = self._known[version]
            if reason is None:
                return read(values)
            text = f"schema version {version_text(version)} cannot be read as {self._label}: {reason}"
            return all_unreadable(values, schema, text, new_schema=True)

        return by_version(values, runs, schema, read_version)

    def _reason(self, definition: SchemaDefinition) -> str | None:
        if definition.type not in self._types:
            return f"it is {definition.type.name} (rule: the type must stay)"
        return self._cannot(definition)


def all_unreadable(values: Any, schema: Any, reason: str, *, new_schema: bool) -> Decoded:
    """Return that none of these values can be read, for one reason; tombstones are null anyway."""
    there = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    return Decoded(
        [pa.nulls(len(values), field.type) for field in schema],
        [UnreadableValue(int(row), reason, new_schema) for row in there],
    )
