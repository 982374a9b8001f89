"""The position of every plane: a topic of changes kept as a Delta table of what is in the air now.

A take-off is a message with the plane's tail number as its key; a landing is a message of the same key without a value,
a tombstone. `magnetar.lakehouse.merge` keeps the table: per key the last change counts, by its position in the topic; a
tombstone removes the row. Each micro-batch is one transaction of the table that carries the query and the number of the
micro-batch, so one that comes again, because Spark's own note of it was lost, does nothing.

Promised, and checked: the table has exactly the planes in the air at the end, each with its last take-off. Spark's note
of the last micro-batch is then removed, as a crash at the worst moment would; the query runs again, and the table has
the same version, the same commits and the same rows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from examples.pipelines.workplace import (
    POSITION,
    Outcome,
    Workplace,
    as_json,
    carry_out,
    departures,
    differences,
    finish,
)
from magnetar.lakehouse import open_lake
from magnetar.lakehouse.merge import merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PER_BATCH: Final = 1_000
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_FLIGHT: Final = "carrier STRING, flight BIGINT, origin STRING, dest STRING, since TIMESTAMP"
_COLUMNS: Final = ["tailnum", "carrier", "flight", "origin", "dest", "since"]


def history(rows: int) -> pl.DataFrame:
    """Return take-offs and landings in order of time, up to the last take-off."""
    flown = departures(rows).drop_nulls(["tailnum", "air_time"])
    off = flown.with_columns(since=pl.col("departure") + pl.duration(minutes="dep_delay"))
    text = off.with_columns(since=pl.col("since").dt.strftime(_TIME))
    off = off.with_columns(
        text.select(as_json("carrier", "flight", "origin", "dest", "since")).to_series(), published="since"
    )
    down = off.with_columns(
        value=pl.lit(None, pl.String), published=pl.col("since") + pl.duration(minutes="air_time")
    ).filter(pl.col("published") <= off["published"].max())
    return (
        pl.concat([down, off]).with_columns(key="tailnum", happened="published").sort("published", maintain_order=True)
    )


def changes(topic: DataFrame) -> DataFrame:
    """Return the columns of the table and each change's position; a tombstone has no ``since``."""
    from pyspark.sql import functions as f

    parsed = f.from_json("value", _FLIGHT).alias("v")
    return topic.select(f.col("__key").cast("string").alias("tailnum"), parsed, *POSITION).select(
        "tailnum", "v.*", *POSITION
    )


def forget_last_commit(checkpoint: str) -> int:
    """Make the state after a crash between the table's commit and Spark's; return the number of that micro-batch."""
    commits = Path(checkpoint) / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    return last


def example(place: Workplace, rows: int) -> Outcome:
    """Publish, merge, lose a note, merge again."""
    changed = history(rows)
    place.publish("planes", changed)
    table, checkpoint = place.path("in-the-air"), place.path("checkpoint-merge")
    topic = place.stream("planes", "merge", ",".join(["__key", *POSITION]), PER_BATCH)
    merge = merged(table, ["tailnum"], deleted="since IS NULL", checkpoint=checkpoint)
    finish(place.start(changes(topic).writeStream.foreachBatch(merge), "merge"))
    first = open_lake(table)
    before = pl.DataFrame(pl.from_arrow(first.read()))
    commits = [(commit.version, commit.batch) for commit in first.history()]

    again = forget_last_commit(checkpoint)
    repeated = finish(place.start(changes(topic).writeStream.foreachBatch(merge), "merge"))
    after = pl.DataFrame(pl.from_arrow(open_lake(table).read()))
    same = [(commit.version, commit.batch) for commit in open_lake(table).history()] == commits

    last = changed.group_by("key", maintain_order=True).last()
    flying = last.filter(pl.col("value").is_not_null()).select(_COLUMNS)
    summary = before.group_by("origin").agg(
        pl.len().alias("planes in the air"),
        pl.col("since").min().dt.strftime("%d %b %H:%M").alias("longest since"),
        pl.col("dest").sort_by("since").first().alias("to"),
    )
    ran = [one["batchId"] for one in repeated if one["numInputRows"]]
    checks = {
        f"{flying.height:,} planes in the air after {changed.height:,} changes of {last.height:,} planes": differences(
            before, flying
        ),
        f"micro-batch {again} came again: the same rows": differences(after, before),
        "and the same commits": [] if same and ran == [again] else [f"it ran {ran}, commits the same: {same}"],
    }
    return Outcome("Planes in the air at the last take-off", summary.sort("origin"), checks)


def main() -> int:
    """0 if all is as promised."""
    return carry_out(__doc__ or "", example, rows=5_000)


if __name__ == "__main__":
    sys.exit(main())
