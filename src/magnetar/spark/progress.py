"""What a running query reports of its Pulsar sources: rates, and how far behind they are.

Spark's progress of a micro-batch holds, for each source, where it began, where it ended and what the source says is the
latest; in that our stream writes how far it is behind (`lag_json`). `progress_of` reads all this from the progress as
Spark's listeners and ``query.lastProgress`` give it; `watch` calls a function with it after every micro-batch.

The listener has nothing to acknowledge: the stream moves its subscriptions itself when Spark asks it for the next end,
which Spark does while a query idles, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from magnetar.client.bulk.lag import Lag
from magnetar.client.read_position import START
from magnetar.spark.offset_json import from_json, own_offset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener


class SourceProgress(NamedTuple):
    """The progress of one source in one micro-batch."""

    query: str
    """Its name, or its id if it has none."""
    batch: int
    topics: tuple[str, ...]
    """Topic-partitions."""
    rows: int
    rows_per_second: float
    """The rate at which they were processed."""
    behind: tuple[str, ...]
    """Topic-partitions that have more than was read."""
    messages_behind: int | None
    """The messages of all of them; None if the broker does not show it, or it was not looked at yet."""
    ms_behind: int | None
    """Age of the oldest message that was not read, by its publish time; None as above."""


def lag_json(found: Mapping[str, Lag], now_ms: int) -> dict[str, dict[str, int]]:
    """Return the value of "lag" in the latest offset."""
    return {
        name: {
            **({} if one.messages is None else {"messages": one.messages}),
            **({} if one.oldest_ms is None else {"ms": max(now_ms - one.oldest_ms, 0)}),
        }
        for name, one in sorted(found.items())
    }


def progress_of(progress: Mapping[str, Any]) -> list[SourceProgress]:
    """Return the progress of those sources that are ours; ``progress`` is Spark's, as a dict
    (``json.loads(progress.json)``)."""
    found = []
    for source in progress.get("sources", ()):
        end, latest = own_offset(source.get("endOffset")), own_offset(source.get("latestOffset"))
        if end is None:
            continue
        read, known = from_json(end), from_json(latest) if latest is not None else {}
        behind = tuple(sorted(name for name, position in known.items() if read.get(name, START) < position))
        lags = (latest or {}).get("lag", {})
        messages = [lags.get(name, {}).get("messages") for name in behind]
        ages = [lags.get(name, {}).get("ms") for name in behind]
        found.append(
            SourceProgress(
                str(progress.get("name") or progress.get("id")),
                int(progress.get("batchId", -1)),
                tuple(sorted(read)),
                int(source.get("numInputRows") or 0),
                float(source.get("processedRowsPerSecond") or 0.0),
                behind,
                None if None in messages or latest is None else sum(messages),
                None if None in ages or latest is None else max(ages, default=0),
            )
        )
    return found


def watch(spark: SparkSession, report: Callable[[SourceProgress], None]) -> StreamingQueryListener:
    """Call ``report`` after every micro-batch of every query of a session; ``spark.streams.removeListener`` ends it."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Runs in a thread of Spark's that queries do not wait for."""

        def onQueryStarted(self, event: Any) -> None:
            """Nothing is known yet."""

        def onQueryProgress(self, event: Any) -> None:
            """A micro-batch has ended."""
            for one in progress_of(json.loads(event.progress.json)):
                report(one)

        def onQueryIdle(self, event: Any) -> None:
            """Nothing has changed."""

        def onQueryTerminated(self, event: Any) -> None:
            """The last progress has been reported."""

    listener = Listener()
    spark.streams.addListener(listener)
    return listener
