"""Flights with the names of their airlines and the seats of their planes, from topics that are tables.

Master data lives in topics: the last message of a key is its row, a message without a value removes it. A table view is
that, read as a DataFrame. The query joins each micro-batch of flights with the views as they are then: what has changed
since the last micro-batch is seen by the next one, without a restart. (A join of a stream with a DataFrame that was
loaded once would see the first state for ever.) What makes this exact where Spark repeats a micro-batch: the result is
stored with the query's id and the number of the micro-batch, so what is written first stays, whatever the views say by
the time of a repetition.

The story: US Airways became American Airlines in December 2013, and Hawaiian is struck from the list. Half of the
flights come before that and half after.

Promised, and checked: each flight is there once, with the airline and the plane as they were when it came.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import polars as pl

from examples.pipelines.workplace import (
    POSITION,
    Outcome,
    Workplace,
    as_json,
    carry_out,
    data,
    departures,
    differences,
    finish,
)
from magnetar.lakehouse import open_lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_BATCH: Final = 1_000
_COLUMNS: Final = ["carrier", "flight", "tailnum", "hour", "airline", "seats"]
_FLIGHT: Final = "carrier STRING, flight BIGINT, tailnum STRING, hour STRING"


def view(place: Workplace, topic: str, key: str, fields: str) -> DataFrame:
    """Return the rows that a topic stands for now: the last message of each key, unless that has no value."""
    from pyspark.sql import functions as f

    last = f.max_by("value", f.struct(*POSITION)).alias("value")
    rows = place.read(topic, ",".join(["__key", *POSITION])).groupBy(f.col("__key").cast("string").alias(key)).agg(last)
    return rows.where("value IS NOT NULL").select(key, f.from_json("value", fields).alias("v")).select(key, "v.*")


def enriched(place: Workplace) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that joins with the views as they are now, and stores the result once."""
    from pyspark.sql import functions as f

    path = place.path("enriched")

    def write(batch: DataFrame, number: int) -> None:
        flights = batch.select(f.from_json("value", _FLIGHT).alias("v")).select("v.*")
        airlines = view(place, "airlines", "carrier", "airline STRING")
        planes = view(place, "planes", "tailnum", "seats BIGINT")
        result = flights.join(airlines, "carrier", "left").join(planes, "tailnum", "left").select(*_COLUMNS)
        query = batch.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
        writer = result.write.format("magnetar-parquet").options(txnAppId=query, txnVersion=str(number))
        writer.mode("append").save(path)

    return write


def rows_of(table: pl.DataFrame, key: str, *columns: str) -> pl.DataFrame:
    """Return messages of a topic that is a table; rows whose first column is null are removals."""
    began = pl.lit("2013-01-01T00:00:00Z").str.to_datetime(time_unit="us", time_zone="UTC")
    value = pl.when(pl.col(columns[0]).is_not_null()).then(as_json(*columns)).alias("value")
    return table.select(value, key=key, happened=began, published=began)


def example(place: Workplace, rows: int) -> Outcome:
    """First half of the flights, changes of the master data, second half."""
    hour = pl.col("time_hour").dt.strftime("%Y-%m-%d %H")
    flights = departures(rows).with_columns(hour=hour).with_columns(key="tailnum", happened="departure")
    flights = flights.with_columns(as_json("carrier", "flight", "tailnum", "hour"), published="departure")
    airlines = data("airlines").rename({"name": "airline"})
    changes = pl.DataFrame({"carrier": ["US", "HA"], "airline": ["American Airlines (was US Airways)", None]})
    planes = data("planes")
    place.publish("airlines", rows_of(airlines, "carrier", "airline"))
    place.publish("planes", rows_of(planes, "tailnum", "seats"))

    parts = [flights.slice(0, rows // 2), flights.slice(rows // 2)]
    write = enriched(place)
    for index, part in enumerate(parts):
        if index:
            place.publish("airlines", rows_of(changes, "carrier", "airline"))
        place.publish("flights", part)
        stream = place.stream("flights", "enrich", "none", PER_BATCH)
        finish(place.start(stream.writeStream.foreachBatch(write), "enrich"))

    found = pl.DataFrame(pl.from_arrow(open_lake(place.path("enriched")).read()))
    then = pl.concat([airlines.join(changes, on="carrier", how="anti"), changes])
    wanted = pl.concat(
        [part.join(names, on="carrier", how="left") for part, names in zip(parts, (airlines, then), strict=True)]
    )
    wanted = wanted.join(planes.select("tailnum", "seats"), on="tailnum", how="left").select(_COLUMNS)
    summary = (
        found.filter(pl.col("carrier").is_in(["US", "HA", "AA"]))
        .group_by("carrier", "airline")
        .agg(pl.len().alias("flights"), pl.col("seats").mean().round(1).alias("mean seats"))
        .sort("carrier", "airline", nulls_last=True)
    )
    checks = {
        f"{wanted.height:,} flights, {wanted['airline'].null_count():,} without an airline, "
        f"{wanted['seats'].null_count():,} with a plane that nobody knows": differences(found, wanted)
    }
    return Outcome("Airlines before and after they changed", summary, checks)


def main() -> int:
    """0 if all is as promised."""
    return carry_out(__doc__ or "", example, rows=5_000)


if __name__ == "__main__":
    sys.exit(main())
