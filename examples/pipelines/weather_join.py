"""Flights and weather, two topics, joined while both go on.

The weather of an airport is observed once an hour; a flight wants the observation of its hour. Both come as streams, at
paces of their own: the query keeps each side's rows until the other side has passed their hour. The watermarks say when
that is, and what lets Spark forget them is that the hour itself is a column of the join. A flight without an
observation is not lost: it comes out without weather when it is certain that none will come (a left outer join).

Promised, and checked: each flight whose hour is over comes out once, with the observation of its hour or with none; it
does not matter that the two topics advance by different hours per micro-batch.
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
    carry_out,
    data,
    departures,
    differences,
    dropped_as_late,
    finish,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_BATCH: Final = 500
DELAY: Final = timedelta(hours=1)
_FLIGHT: Final = "origin STRING, time_hour TIMESTAMP, carrier STRING, flight BIGINT, dep_delay BIGINT"
_WEATHER: Final = "origin STRING, time_hour TIMESTAMP, wind_speed DOUBLE, precip DOUBLE"
_COLUMNS: Final = ["origin", "hour", "carrier", "flight", "dep_delay", "wind_speed", "precip"]
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


def published_flights(rows: int) -> pl.DataFrame:
    """Return flights, published at the time when they should leave; their key is the airport."""
    table = departures(rows).with_columns(hour="time_hour", time_hour=pl.col("time_hour").dt.strftime(_TIME))
    value = as_json("origin", "time_hour", "carrier", "flight", "dep_delay")
    return table.with_columns(value, key="origin", happened="departure", published="departure")


def published_weather(flights: pl.DataFrame) -> pl.DataFrame:
    """Return the weather observations of the hours of these flights, and of some hours more."""
    hour = pl.col("time_hour").str.to_datetime(_TIME, time_unit="us", time_zone="UTC")
    table = data("weather").with_columns(hour.alias("hour")).sort("hour", maintain_order=True)
    table = table.filter(pl.col("hour") <= flights["hour"].max() + timedelta(hours=6))  # type: ignore[operator]  # a time
    value = as_json("origin", "time_hour", "wind_speed", "precip")
    return table.with_columns(value, key="origin", happened="hour", published="hour")


def joined(flights: DataFrame, weather: DataFrame) -> DataFrame:
    """Join each flight with the weather of its hour."""
    from pyspark.sql import functions as f

    left = flights.select(f.from_json("value", _FLIGHT).alias("v")).select("v.*")
    right = weather.select(f.from_json("value", _WEATHER).alias("v")).select("v.*")
    left = left.withWatermark("time_hour", f"{DELAY.seconds} seconds").alias("l")
    right = right.withWatermark("time_hour", f"{DELAY.seconds} seconds").alias("r")
    same = f.expr("l.origin = r.origin AND l.time_hour = r.time_hour")
    return left.join(right, same, "leftOuter").select(
        "l.origin", f.col("l.time_hour").alias("hour"), "carrier", "flight", "dep_delay", "wind_speed", "precip"
    )


def expected(flights: pl.DataFrame, weather: pl.DataFrame) -> pl.DataFrame:
    """Return all flights with weather, and those without whose hour the slower topic's watermark has passed."""
    both = flights.join(
        weather.select("origin", "hour", "wind_speed", "precip", seen=True), on=["origin", "hour"], how="left"
    )
    watermark = min(flights["hour"].max(), weather["hour"].max()) - DELAY  # type: ignore[operator,type-var]  # times
    return both.filter(pl.col("seen").is_not_null() | (pl.col("hour") <= watermark))


def example(place: Workplace, rows: int) -> Outcome:
    """Publish both, join, read the table."""
    from magnetar.lakehouse import open_lake

    flights = published_flights(rows)
    weather = published_weather(flights)
    place.publish("flights", flights)
    place.publish("weather", weather)
    query = joined(
        place.stream("flights", "join", "none", PER_BATCH), place.stream("weather", "join", "none", PER_BATCH)
    )
    writer = query.writeStream.format("magnetar-parquet").option("path", place.path("joined")).outputMode("append")
    dropped = dropped_as_late(finish(place.start(writer, "join")))

    found = pl.DataFrame(pl.from_arrow(open_lake(place.path("joined")).read()))
    wanted = expected(flights, weather)
    wind = pl.col("wind_speed")
    strength = (
        pl.when(wind.is_null())
        .then(pl.lit("no observation"))
        .when(wind < 10)
        .then(pl.lit("below 10 mph"))
        .when(wind < 20)
        .then(pl.lit("from 10 mph"))
        .otherwise(pl.lit("from 20 mph"))
    )
    summary = (
        found.group_by(strength.alias("wind"))
        .agg(pl.len().alias("flights"), pl.col("dep_delay").mean().round(1).alias("minutes late on average"))
        .sort("wind")
    )
    checks = {
        f"{wanted.height:,} of {flights.height:,} flights, {wanted['seen'].null_count():,} of them without an "
        f"observation; {flights.height - wanted.height:,} still wait": differences(found, wanted.select(_COLUMNS)),
        "rows that Spark has dropped: 0": [f"{dropped} rows dropped"] if dropped else [],
    }
    return Outcome("Delays by the wind of the hour", summary, checks)


def main() -> int:
    """0 if all is as promised."""
    return carry_out(__doc__ or "", example, rows=5_000)


if __name__ == "__main__":
    sys.exit(main())
