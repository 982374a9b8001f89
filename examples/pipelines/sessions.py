"""The working days of planes: sessions with a processor of one's own, state and timers (`transformWithState`).

A session of a plane is a run of flights out of New York, each less than ten hours after the one before. Spark's
`session_window` would count them; what happens inside of a session (here: its airports, in order) needs code. The
processor below keeps one row of state per plane and a timer at the end of its session. When a flight comes, the timer
is moved; when the watermark passes the timer, the session comes out and its state is gone.

Needed: the state store RocksDB, whose Java library is part of PyPI's pyspark, and the packages protobuf and pyarrow,
which magnetar has anyway. State that expires by itself (``ttlDurationMs``) exists in the time mode ProcessingTime only;
with event time, as here, the timer is what removes the state.

Promised, and checked: each session that is over comes out once, with all its flights in order; sessions that may still
go on do not come out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import polars as pl
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from examples.pipelines.workplace import (
    Outcome,
    Workplace,
    as_json,
    carry_out,
    departures,
    differences,
    finish,
)
from magnetar.lakehouse import open_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PER_BATCH: Final = 500
GAP: Final = timedelta(hours=10)
DELAY: Final = timedelta(minutes=10)
_STATE: Final = "began BIGINT, last BIGINT, flights BIGINT, route STRING"
_SESSION: Final = f"tailnum STRING, {_STATE}"
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Sessions(StatefulProcessor):
    """Rows (tailnum, at in ms, origin) to sessions; one group per plane."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called in each task, before all else."""
        self._handle = handle
        self._session = handle.getValueState("session", _STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Row]:
        """All rows of a plane in this micro-batch, in no order."""
        del timerValues
        began, last, flights, route = self._session.get() or (None, None, 0, "")
        if last is not None:
            self._handle.deleteTimer(last + self._gap_ms)
        for row in sorted(rows, key=lambda row: row.at):
            if last is not None and row.at - last >= self._gap_ms:
                yield Row(tailnum=key[0], began=began, last=last, flights=flights, route=route)
                began, flights, route = None, 0, ""
            began = row.at if began is None else began
            last, flights, route = row.at, flights + 1, f"{route} {row.origin}".strip()
        self._session.update((began, last, flights, route))
        self._handle.registerTimer(last + self._gap_ms)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """The watermark has passed the end of the session."""
        del timerValues, expiredTimerInfo
        began, last, flights, route = self._session.get() or (None, None, 0, "")
        self._session.clear()
        yield Row(tailnum=key[0], began=began, last=last, flights=flights, route=route)


def sessions(topic: DataFrame) -> DataFrame:
    """The query."""
    from pyspark.sql import functions as f

    rows = topic.where("__key IS NOT NULL").select(
        "__eventTime",
        f.col("__key").cast("string").alias("tailnum"),
        f.unix_millis("__eventTime").alias("at"),
        f.get_json_object("value", "$.origin").alias("origin"),
    )
    grouped = rows.withWatermark("__eventTime", f"{DELAY.seconds} seconds").groupBy("tailnum")
    return grouped.transformWithState(
        Sessions(GAP.seconds * 1000), outputStructType=_SESSION, outputMode="Append", timeMode="EventTime"
    )


def expected(published: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Sessions that are over, and how many are not."""
    rows = published.drop_nulls("key").with_columns(at=pl.col("happened").dt.epoch("ms"), tailnum="key")
    gap = GAP.seconds * 1000
    new = (pl.col("at") - pl.col("at").shift(1).over("tailnum") >= gap).fill_null(False)
    rows = rows.with_columns(new.alias("new")).with_columns(number=pl.col("new").cum_sum().over("tailnum"))
    every = rows.group_by("tailnum", "number").agg(
        began=pl.col("at").min(),
        last=pl.col("at").max(),
        flights=pl.len().cast(pl.Int64),
        route=pl.col("origin").str.join(" "),
    )
    watermark = rows["at"].max() - DELAY.seconds * 1000  # type: ignore[operator]  # a number
    # The one before the last of a plane is over when the last one begins.
    over = (pl.col("last") + gap <= watermark) | (pl.col("number") < pl.col("number").max().over("tailnum"))
    closed = every.filter(over)
    return closed.drop("number"), every.height - closed.height


@contextmanager
def rocks_db(spark: SparkSession) -> Iterator[None]:
    """Use RocksDB as the state store of queries that start within this context."""
    before = spark.conf.get(_PROVIDER)
    spark.conf.set(_PROVIDER, _ROCKS)
    try:
        yield
    finally:
        spark.conf.set(_PROVIDER, before or "")


def example(place: Workplace, rows: int) -> Outcome:
    """Publish, run, read the sessions."""
    published = departures(rows).with_columns(
        as_json("origin", "dest", "flight"), key="tailnum", happened="departure", published="departure"
    )
    place.publish("flights", published)
    query = sessions(place.stream("flights", "sessions", "__key,__eventTime", PER_BATCH))
    writer = query.writeStream.format("magnetar-parquet").option("path", place.path("sessions")).outputMode("append")
    with rocks_db(place.spark):
        finish(place.start(writer, "sessions"))

    found = pl.DataFrame(pl.from_arrow(open_lake(place.path("sessions")).read()))
    wanted, still_open = expected(published)
    hours = (pl.col("last") - pl.col("began")) / 3_600_000
    summary = (
        found.group_by("flights")
        .agg(
            pl.len().alias("sessions"),
            hours.mean().round(1).alias("mean hours"),
            pl.col("route").sort_by("began", "tailnum").first().alias("the first one's airports"),
        )
        .sort("flights")
        .rename({"flights": "flights in a session"})
    )
    checks = {f"{wanted.height:,} sessions that are over; {still_open:,} may go on": differences(found, wanted)}
    return Outcome("Working days of planes", summary, checks)


def main() -> int:
    """0 if all is as promised."""
    return carry_out(__doc__ or "", example, rows=5_000)


if __name__ == "__main__":
    sys.exit(main())
