"""Departures per hour and airport, as a window closes; flights that come after that go to a topic of their own.

A flight belongs to the hour in which it should have left, but it is published only when it has left. Most are a few
minutes late, some are so late that their hour has long been closed. Spark drops such rows when a window is older than
the watermark, and shows only a counter. Here no row is dropped: how late a message is can be read from the message
itself, publish time minus event time. What is more than two hours late goes to a topic of its own, where it can still
be added up; the rest is counted, with a watermark of the same two hours. Because the source admits messages by publish
time over all partitions, nothing that is counted can be later than that watermark.

Promised, and checked: each window is published once, when it is closed, and has all its flights that were not late;
each late flight is in the other topic once; both together are all flights; Spark has dropped nothing.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import polars as pl

from examples.pipelines.workplace import (
    Outcome,
    Workplace,
    as_json,
    as_polars,
    carry_out,
    departures,
    differences,
    dropped_as_late,
    finish,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_BATCH: Final = 500
BOUND: Final = timedelta(hours=2)
_LATE: Final = "__publishTime - __eventTime > INTERVAL '2' HOUR"
_WINDOW: Final = "origin STRING, hour TIMESTAMP, flights BIGINT, delay BIGINT"


def history(rows: int) -> pl.DataFrame:
    """Return flights in the order of their publication: cancelled ones when they should have left."""
    waited = pl.duration(minutes=pl.col("dep_delay").fill_null(0).clip(0))
    return (
        departures(rows)
        .select(
            as_json("origin", "carrier", "flight", "dest", "dep_delay"),
            "origin",
            "dep_delay",
            key="tailnum",
            happened="departure",
            published=pl.col("departure") + waited,
        )
        .sort("published", maintain_order=True)
    )


def windows(flights: DataFrame) -> DataFrame:
    """Return departures that are not late, per hour and airport: a row when its hour is closed."""
    from pyspark.sql import functions as f

    parsed = flights.where(f"NOT ({_LATE})").select(
        "__eventTime", f.from_json("value", "origin STRING, dep_delay BIGINT").alias("flight")
    )
    counted = (
        parsed.withWatermark("__eventTime", f"{BOUND.seconds} seconds")
        .groupBy(f.window("__eventTime", "1 hour"), "flight.origin")
        .agg(f.count("*").alias("flights"), f.sum("flight.dep_delay").alias("delay"))
    )
    row = f.struct("origin", f.col("window.start").alias("hour"), "flights", "delay")
    return counted.select(f.to_json(row).alias("value"), f.col("origin").alias("__key"))


def expected(published: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the closed windows, and the late flights."""
    late = pl.col("published") - pl.col("happened") > BOUND
    on_time = published.filter(~late)
    watermark = on_time["happened"].dt.epoch("ms").max() - BOUND.seconds * 1000  # type: ignore[operator]  # a number
    hours = (
        on_time.group_by("origin", hour=pl.col("happened").dt.truncate("1h"))
        .agg(flights=pl.len().cast(pl.Int64), delay=pl.col("dep_delay").sum())
        .filter((pl.col("hour") + timedelta(hours=1)).dt.epoch("ms") <= watermark)
    )
    return hours, published.filter(late).select("value", "key", "happened")


def example(place: Workplace, rows: int) -> Outcome:
    """Publish, run both queries to the end, read both topics back."""
    from pyspark.sql import functions as f

    published = history(rows)
    place.publish("flights", published)
    metadata = "__key,__eventTime,__publishTime"
    counted = windows(place.stream("flights", "windows", metadata, PER_BATCH)).writeStream.format("pulsar")
    # After a shuffle, exactly once means: stored first, and sent from there.
    counted = counted.options(**place.topic("windows"), staging=place.path("staged")).outputMode("append")
    late = place.stream("flights", "late", metadata, PER_BATCH).where(_LATE).drop("__publishTime")
    queries = [
        place.start(counted, "windows"),
        place.start(late.writeStream.format("pulsar").options(**place.topic("late")), "late"),
    ]
    dropped = sum(dropped_as_late(finish(query)) for query in queries)

    closed = as_polars(place.read("windows").select(f.from_json("value", _WINDOW).alias("w")).select("w.*"))
    strays = place.read("late", "__key,__eventTime").withColumnRenamed("__eventTime", "happened")
    strays = strays.select("value", f.col("__key").cast("string").alias("key"), "happened")
    hours, late_flights = expected(published)
    summary = (
        published.group_by("origin", maintain_order=True)
        .agg(
            pl.len().alias("flights"),
            (pl.col("published") - pl.col("happened") > BOUND).sum().alias("in topic late"),
        )
        .join(closed.group_by("origin").agg(pl.len().alias("windows"), pl.sum("flights").alias("counted")), on="origin")
        .with_columns((pl.col("flights") - pl.col("counted") - pl.col("in topic late")).alias("in open windows"))
        .sort("origin")
    )
    checks = {
        f"{hours.height:,} closed windows": differences(closed, hours),
        f"{late_flights.height:,} late flights": differences(as_polars(strays), late_flights),
        "rows that Spark has dropped: 0": [f"{dropped} groups dropped"] if dropped else [],
    }
    return Outcome("Departures per hour, with late data", summary, checks)


def main() -> int:
    """0 if all is as promised."""
    return carry_out(__doc__ or "", example, rows=5_000)


if __name__ == "__main__":
    sys.exit(main())
