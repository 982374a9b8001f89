"""Column expressions: a row decoded, judged, hashed, and made a dead letter.

The outcome of a row at a place (source, step or sink) is a column ``__outcome_<place>``: null for a good row, else
action and cause, as in ``dead-letter:has-origin``. Causes beside the names of expectations: ``decode`` for bytes that
cannot be read as declared, ``marked`` for what a step marked itself, by a text in the column ``__deadLetter``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from magnetar.columnar.arrow_decoder import METADATA, STANDARD, chosen_columns
from magnetar.pipelines.declaration.elements import SINK_COLUMNS
from magnetar.pipelines.declaration.model import Action, Expectation, TopicSink, TopicSource
from magnetar.pipelines.state import dead_letter

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

OUTCOME: Final = "__outcome_"
MARK: Final = "__deadLetter"
RAW: Final = "__rawValue"
ERROR: Final = "__decodeError"
HASH: Final = "__print"
POSITION: Final = ("__topic", "__ledgerId", "__entryId", "__batchIndex")
_MOMENTS: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""Options of to_json, which by itself leaves out what is less than a millisecond."""
_CORRUPT: Final = "__corrupt"
_HIDDEN: Final = frozenset({RAW, ERROR, HASH, MARK})


def metadata_of(source: TopicSource) -> str:
    """Return the option ``metadata``: what the user wants, the position, and what a dead letter needs."""
    wanted = source.options.get("metadata", "")
    chosen = {"__key", "__eventTime", "__messageProperties", *POSITION, *chosen_columns(wanted)}
    chosen |= set() if wanted else set(STANDARD)
    return ",".join(name for name in METADATA if name in chosen)


def hashed(frame: DataFrame) -> DataFrame:
    """Add `HASH`: 64 bits over all columns as they were read."""
    from pyspark.sql import functions as f

    columns = [
        f.col(field.name) if _is_simple(field.dataType) else f.to_json(f.struct(field.name)) for field in frame.schema
    ]
    return frame.withColumn(HASH, f.xxhash64(*columns))


def _is_simple(kind: DataType) -> bool:
    return kind.typeName() not in ("map", "struct", "array", "variant")


def decoded(frame: DataFrame, source: TopicSource) -> DataFrame:
    """Decode the value into the declared columns, and add `RAW` and `ERROR`."""
    from pyspark.sql import functions as f

    others = [name for name in frame.columns if name not in ("value", RAW, ERROR)]
    if source.value == "schema":
        # The data source has decoded; it gives RAW and ERROR for what it could not.
        missing = [f.lit(None).cast("binary").alias(RAW), f.lit(None).cast("string").alias(ERROR)]
        return frame.select(
            "*", *(one for one, name in zip(missing, (RAW, ERROR), strict=True) if name not in frame.columns)
        )
    raw = f.col("value").alias(RAW)
    if source.value == "binary":
        return frame.select("value", *others, raw, f.lit(None).cast("string").alias(ERROR))
    is_text = f.is_valid_utf8(f.col("value").cast("string"))
    no_text = f.when(f.col("value").isNotNull() & ~is_text, "the value is no UTF-8 text")
    text = f.when(is_text, f.col("value").cast("string"))
    if source.value == "string":
        return frame.select(text.alias("value"), *others, raw, no_text.alias(ERROR))
    fields = f"{source.fields}, {_CORRUPT} STRING"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = frame.select("value", *others, f.from_json(text, fields, options).alias("__parsed"))
    corrupt = f.col("value").isNotNull() & (f.col("__parsed").isNull() | f.col(f"__parsed.{_CORRUPT}").isNotNull())
    error = f.coalesce(no_text, f.when(corrupt, f"the value is no JSON with the fields {source.fields}"))
    return parsed.select("__parsed.*", *others, raw, error.alias(ERROR)).drop(_CORRUPT)


def outcome_of(expectations: Sequence[Expectation], *, decode: Action | None, mark: Action | None) -> Column:
    """Return the column with the first thing that is wrong with a row; null if nothing is."""
    from pyspark.sql import functions as f

    found = []
    if decode is not None:
        found.append(f.when(f.col(ERROR).isNotNull(), f"{decode.value}:decode"))
    if mark is not None:
        found.append(f.when(f.col(MARK).isNotNull(), f"{mark.value}:marked"))
    for one in expectations:
        good = f.coalesce(f.expr(one.condition), f.lit(False))
        found.append(f.when(~good, f"{one.action.value}:{one.name}"))
    return f.coalesce(*found, f.lit(None).cast("string")) if found else f.lit(None).cast("string")


def good_rows(frame: DataFrame, place: str) -> DataFrame:
    """Return the good rows, without the columns that are added here."""
    from pyspark.sql import functions as f

    outcome = OUTCOME + place
    return frame.where(f.col(outcome).isNull()).drop(outcome, *_HIDDEN)


def dead_letters(
    frame: DataFrame,
    place: str,
    expectations: Sequence[Expectation],
    pipeline: str,
    *,
    whole: bool,
    decoded_at_source: bool = False,
) -> DataFrame:
    """Return the messages for the dead-letter topic; ``whole``: the rows are still messages."""
    from pyspark.sql import functions as f

    outcome = f.col(OUTCOME + place)
    dead = frame.where(outcome.startswith(f"{Action.DEAD_LETTER.value}:"))
    cause = f.substring_index(outcome, ":", -1)
    detail = f.coalesce(
        *([f.col(ERROR)] if ERROR in frame.columns else []),
        *([f.col(MARK)] if MARK in frame.columns else []),
        *(f.when(cause == one.name, f"{one.condition} is not true") for one in expectations),
        f.lit(""),
    )
    columns = set(frame.columns)
    shown = [name for name in frame.columns if not name.startswith(OUTCOME) and name not in _HIDDEN]
    row = f.to_json(f.struct(*shown), _MOMENTS).cast("binary")
    value, kind = row, f.lit(dead_letter.ROW)
    if whole:
        # A data source that decodes keeps the bytes of what it could not decode; of others the position is enough.
        is_message = f.col(RAW).isNotNull() if decoded_at_source else f.lit(True)
        value, kind = (
            f.when(is_message, f.col(RAW)).otherwise(row),
            f.when(is_message, dead_letter.MESSAGE).otherwise(kind),
        )
    topic = position = f.lit("")
    if columns.issuperset(POSITION):
        topic = f.coalesce("__topic", f.lit(""))
        position = f.coalesce(f.concat_ws(":", "__ledgerId", "__entryId", "__batchIndex"), f.lit(""))
    ours = {
        dead_letter.NAME: f.lit(pipeline),
        dead_letter.KIND: kind,
        dead_letter.CAUSE: cause,
        dead_letter.DETAIL: detail,
        dead_letter.PLACE: f.lit(place),
        dead_letter.TOPIC: topic,
        dead_letter.POSITION: position,
    }
    properties = f.create_map(*(part for name, text in ours.items() for part in (f.lit(name), text)))
    if "__messageProperties" in columns:
        theirs = f.map_filter("__messageProperties", lambda name, _: ~f.startswith(name, f.lit(dead_letter.PREFIX)))
        properties = f.map_concat(f.coalesce(theirs, f.create_map().cast("map<string,string>")), properties)
    nothing = f.lit(None)
    return dead.select(
        value.alias("value"),
        (f.col("__key") if "__key" in columns else nothing).cast("binary").alias("__key"),
        (f.col("__eventTime") if "__eventTime" in columns else nothing).cast("timestamp").alias("__eventTime"),
        properties.alias("__messageProperties"),
    )


def sink_rows(frame: DataFrame, sink: TopicSink) -> DataFrame:
    """Return the columns that format("pulsar") writes."""
    from pyspark.sql import functions as f

    made = {SINK_COLUMNS[key]: f.expr(text) for key, text in sink.columns.items()}
    for name in ("value", "__key", "__eventTime", "__messageProperties"):
        if name not in made and name in frame.columns:
            made[name] = f.col(name)
    if "value" not in made:
        made["value"] = f.to_json(f.struct(*(name for name in frame.columns if not name.startswith("__"))), _MOMENTS)
    return frame.select(*(column.alias(name) for name, column in made.items()))


def message_print() -> Column:
    """Return the hash of a message that `verify` computes from the topic: CRC-32 of key, a zero byte, value."""
    from pyspark.sql import functions as f

    def filled(name: str) -> Column:
        return f.coalesce(f.col(name).cast("binary"), f.lit(b""))

    return f.crc32(f.concat(filled("__key"), f.lit(b"\0"), filled("value")))


def row_print(columns: Sequence[str], row: str | None = None) -> Column:
    """Return the hash of a table's row: 64 bits over its columns as JSON, by name, without those that are null.

    So neither the order of columns nor columns that were added later make a difference. ``row``: the struct that has
    them.
    """
    from pyspark.sql import functions as f

    where = "" if row is None else f"{row}."
    named = [f.col(f"{where}`{name.replace('`', '``')}`").alias(name) for name in sorted(columns)]
    return f.xxhash64(f.to_json(f.struct(*named), {"timeZone": "UTC", **_MOMENTS}))


def sums(column: Column) -> list[Column]:
    """Return two sums of 32 bits each that cannot overflow; `sum_of` combines them."""
    from pyspark.sql import functions as f

    return [
        f.sum(f.shiftrightunsigned(column, 32)).alias("__high"),
        f.sum(column.bitwiseAND(f.lit(0xFFFFFFFF))).alias("__low"),
    ]


def sum_of(high: int | None, low: int | None) -> int:
    """Combine the two sums; modulo 2^64 it is the sum of the 64-bit numbers."""
    return ((high or 0) << 32) + (low or 0)
