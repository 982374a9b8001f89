"""A topic as a table: which columns it has, and its rows in batches, between two ends that were fixed before.

It reads as Spark's source does, with its options: ranges of internal topics, without a lasting trace at the broker.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from magnetar.client.login import ClientLogin
from magnetar.client.lookup import Lookup
from magnetar.client.schemas import Registry
from magnetar.columnar.arrow_decoder import METADATA, ArrowDecoder, arrow_schema
from magnetar.columnar.values import Binary, ValueDecoder
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.spark.options.encryption_keys import Decryption
from magnetar.spark.options.offsets import NamedOffset, OffsetSpec, parse_offset
from magnetar.spark.options.source_options import SourceOptions, open_lookup, source_options
from magnetar.spark.options.topic_selection import topic_partitions, topics_by_name
from magnetar.spark.source.planning.offset_resolution import resolve_end, resolve_start
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.reading.range_entries import range_blocks
from magnetar.spark.source.reading.value_schemas import resolved, value_decoder

if TYPE_CHECKING:
    from magnetar.cli.sql.read_bounds import ReadBounds

_PROPERTIES = "__messageProperties"


def place(text: str) -> OffsetSpec:
    """Return a place in topics: earliest, latest, LEDGER:ENTRY[:BATCH], or a time. Raises InvalidValueError."""
    if len(text) >= 10 and text[:4].isdecimal() and text[4] == "-":
        text = f"@{text}"
    return parse_offset(text)


def reading_options(
    service_url: str, login: ClientLogin, value: str, keys: Decryption | None = None, *, strict: bool
) -> SourceOptions:
    """Return how topics are read; ``strict``: what was trimmed meanwhile is an error."""
    given = {"service.url": service_url, "topic": "t", "value": value, "failOnDataLoss": str(strict).lower()}
    return dataclasses.replace(source_options(given), login=login, decryption=keys)


class TopicTable:
    """One topic of a query. It is read when the engine asks, perhaps several times."""

    def __init__(
        self, topic: str, options: SourceOptions, metadata: Sequence[str], bounds: ReadBounds,
        start: OffsetSpec, end: OffsetSpec,
    ) -> None:  # fmt: skip
        """Ask the broker for the topic's columns and ends. Raises why it cannot be read."""
        self._metadata = tuple(metadata)
        self._bounds = bounds
        if not TopicName.parse(topic).persistent:
            raise InvalidValueError(f"{topic} stores nothing that could be read; receive it with magnetar consume")
        options = dataclasses.replace(options, topics=topics_by_name([topic]))
        with open_lookup(options) as lookup:
            names = topic_partitions(lookup, options.topics, create=False)
            parent = TopicName.parse(topic).parent.fqn
            if options.value.kind == "auto" and Registry(lookup, parent).latest() is None:
                options = dataclasses.replace(options, value=dataclasses.replace(options.value, kind="binary"))
            strict = options.fail_on_data_loss
            if len(names) > 1 and any(isinstance(at, tuple) and len(at) == 3 for at in (start, end)):
                raise InvalidValueError(f"{topic} has {len(names)} partitions, and a message id is of one: give a time")
            ends = {name: resolve_end(lookup, name, end, strict=strict) for name in names}
            self._ranges = [
                Range(
                    name,
                    ends[name] if start is NamedOffset.LATEST else resolve_start(lookup, name, start, strict=strict),
                    ends[name],
                )
                for name in names
            ]
        self._options = resolved(options)
        self._values = value_decoder(self._options).schema
        self.schema = _frame(arrow_schema(self._values, self._metadata).empty_table()).schema
        """Names and types of the columns."""

    def frame(self) -> pl.LazyFrame:
        """Return it as the engine takes it."""
        return register_io_source(self._read, schema=self.schema)

    def _read(
        self, columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        try:
            yield from self._frames(columns, predicate, n_rows)
        except Exception as error:
            self._bounds.failure = error
            raise

    def _frames(
        self, columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = list(self.schema) if columns is None else columns
        left = n_rows
        for one in self._ranges:
            if left == 0:
                return
            with closing(self._batches(one, wanted)) as batches:
                for batch in batches:
                    found = _frame(batch).select(wanted)
                    if left is not None:
                        found = found.head(left)
                        left -= found.height
                    yield found if predicate is None else found.filter(predicate)
                    if left == 0:
                        break

    def _batches(self, one: Range, wanted: Sequence[str]) -> Generator[Any, None, None]:
        """Yield Arrow record batches; of what is not wanted, nothing is decoded."""
        if one.start >= one.end:
            return
        metadata = tuple(name for name in self._metadata if name in wanted)
        with open_lookup(self._options) as lookup:
            decoder = ArrowDecoder(one.topic, self._decoder(lookup, one.topic, wanted), metadata)
            for block in range_blocks(self._options, lookup, one):
                self._bounds.check_time()
                yield from map(self._counted, decoder.add_block(block))
            yield from map(self._counted, decoder.flush())

    def _decoder(self, lookup: Lookup, topic: str, wanted: Sequence[str]) -> ValueDecoder:
        if any(name in wanted for name in self._values.names):
            return value_decoder(self._options, lookup, topic)
        return ValueDecoder(Binary())

    def _counted(self, batch: Any) -> Any:
        self._bounds.take(batch.num_rows, batch.nbytes)
        return batch


def _frame(rows: Any) -> pl.DataFrame:
    """Return rows as the engine has them: properties are text in JSON, because SQL has no maps."""
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame), "rows of columns"
    if _PROPERTIES not in found.columns:
        return found
    texts = [
        None if pairs is None else json.dumps(dict(pairs), ensure_ascii=False)
        for pairs in rows.column(_PROPERTIES).to_pylist()
    ]
    return found.with_columns(pl.Series(_PROPERTIES, texts, dtype=pl.String))


KNOWN = tuple(METADATA)
"""All columns of metadata."""
