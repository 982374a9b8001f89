"""What offsets keep of options: a repeated micro-batch is cut as at first, another subscription is noticed."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from magnetar.client.read_position import ReadPosition
from magnetar.spark.offset_json import from_json, tasks_of, to_json
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.reading.read_task import ReadTask
from magnetar.spark.source.reading.stream_reader import StreamReader

BASE = {"service.url": "pulsar://localhost:6650", "topic": "t", "subscription": "s"}
T = "persistent://public/default/t"


def reader(**options: str) -> StreamReader:
    return StreamReader(source_options({**BASE, **options}))


def test_options_that_changed_count_from_the_next_micro_batch_on() -> None:
    start = to_json({T: ReadPosition(1, 0)})
    planned = to_json({T: ReadPosition(1, 8)}, (4, 0))
    for now in (reader(minPartitions="4"), reader(), reader(minPartitions="2", maxPartitions="1")):
        tasks = now.partitions(start, planned)
        assert len(tasks) == 4
        assert all(isinstance(task, ReadTask) for task in tasks)
    # Offsets of a release that did not note it.
    old = to_json({T: ReadPosition(1, 8)})
    assert len(reader(minPartitions="2").partitions(start, old)) == 2
    assert tasks_of(old, (3, 5)) == (3, 5)
    assert from_json(planned) == from_json(old)


class Topics:
    """What a stream knows of one topic that has three entries."""

    END: ClassVar = {T: ReadPosition(1, 3)}

    def initial(self) -> dict[str, ReadPosition]:
        return {T: ReadPosition(1, 0)}

    def latest(self) -> dict[str, ReadPosition]:
        return dict(self.END)

    def check_there(self, start: Any) -> None:
        """It is."""

    def move_to(self, positions: Any) -> None:
        """The broker has been told."""

    def bound(self, start: Any, end: Any, *_: int) -> tuple[Any, dict[str, Any]]:
        return end, {}


def stream(**options: str) -> StreamReader:
    made = reader(**options)
    topics: Any = Topics()
    made._tracker = topics
    return made


def test_a_query_that_goes_on_with_another_subscription_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """The one before keeps the topic from being trimmed, for ever, and nothing else would show it."""
    begun = stream(subscription="before")
    end = begun.latestOffset(begun.initialOffset(), ReadAllAvailable())
    assert begun.latestOffset(end, ReadAllAvailable()) == end and not caplog.messages
    going_on = stream(subscription="now")
    for _ in range(3):
        assert going_on.latestOffset(end, ReadAllAvailable()) == end
    (said,) = caplog.messages
    assert "is of the subscription 'before', and the query goes on with 'now': 'before' stays where it is" in said
    # Offsets of a release that did not note it say nothing.
    old = to_json(Topics.END)
    assert going_on.latestOffset(old, ReadAllAvailable()) == old and len(caplog.messages) == 1
