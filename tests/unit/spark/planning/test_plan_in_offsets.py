"""A repeated micro-batch is cut into the tasks of its first attempt, whatever the options say by then."""

from __future__ import annotations

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
