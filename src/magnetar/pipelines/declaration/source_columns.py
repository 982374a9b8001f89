"""The columns of a topic source as far as its options fix them, without Spark and without the broker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from magnetar.columnar.arrow_decoder import METADATA, STANDARD, chosen_columns
from magnetar.pipelines.declaration.ddl import DdlColumn, DdlError, columns_of
from magnetar.pipelines.declaration.model import TopicSource

_ALWAYS: Final = (
    *("__key", "__eventTime", "__messageProperties"),
    *("__topic", "__ledgerId", "__entryId", "__batchIndex"),
)
"""What a pipeline reads of each message besides: what dead letters are made of."""


def kinds_of(fields: Iterable[DdlColumn], value: str, metadata: str) -> dict[str, str]:
    """Return the columns with their kinds. Raises MagnetarError for a ``metadata`` that cannot be."""
    named = chosen_columns(metadata) if metadata else STANDARD
    kinds = {one.name: one.kind for one in fields}
    kinds |= {} if kinds else {"value": "string" if value == "string" else "binary"}
    return kinds | {name: METADATA[name].sql for name in dict.fromkeys((*named, *_ALWAYS))}


def kinds_of_source(source: TopicSource) -> dict[str, str] | None:
    """Return the columns with their kinds; None where a schema at the broker says what they are. Raises what
    `kinds_of` does."""
    if source.value == "schema":
        return None
    try:
        fields = columns_of(source.fields) if source.fields else []
    except DdlError:
        # It is reported at the fields.
        return None
    return kinds_of(fields, source.value, source.options.get("metadata", ""))
