"""Finds the values that spoil a batch by bisection, for libraries that only report that a batch cannot be read.

A batch that cannot be read is cut in two, and so is each part, until every value that does not fit stands alone: a few
steps per bad value, while all others are still read together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.columnar.values import Decoded, UnreadableValue


def read_by_bisection(
    values: Any, schema: Any, read: Callable[[Any], list[Any]], errors: tuple[type[Exception], ...], misfit: str
) -> Decoded:
    """Read all values, halving what fails. ``misfit`` begins the reasons; ``read`` raises one of ``errors``."""
    unreadable: list[UnreadableValue] = []

    def parts(part: Any, first: int) -> list[list[Any]]:
        count = len(part)
        try:
            return [read(part)]
        except errors as error:
            if count == 1:
                unreadable.append(UnreadableValue(first, f"{misfit}: {str(error)[:300]}"))
                return [[pa.nulls(1, field.type) for field in schema]]
        half = count // 2
        return [*parts(part[:half], first), *parts(part[half:], first + half)]

    found = parts(values, 0)
    columns = found[0] if len(found) == 1 else [pa.concat_arrays(list(one)) for one in zip(*found, strict=True)]
    return Decoded(columns, unreadable)
