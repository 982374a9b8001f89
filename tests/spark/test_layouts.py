"""Layouts of tasks that may not come again: refused before anything is sent, or stored first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from magnetar.spark.data_source import PulsarSource
from magnetar.spark.sink.task_sink import Published, TaskSink
from magnetar.spark.sink.writers import StreamWriter
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = 600
_NAMESPACE = "persistent://public/default"


class Halting(TaskSink):
    """Sends one record batch of what it is given, and fails."""

    def run(self, batches: Iterator[Any]) -> Published:
        super().run(iter([next(batches)]))
        raise RuntimeError("on purpose")


class HaltingStream(StreamWriter):
    task_sink: ClassVar[type[TaskSink]] = Halting


class HaltingSource(PulsarSource):
    @classmethod
    def name(cls) -> str:
        return "halting"

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:
        return HaltingStream(super().streamWriter(schema, overwrite)._options)


@pytest.fixture(scope="module")
def source(spark: Any, broker: LiveBroker) -> dict[str, str]:
    """Options of a topic with numbers in it."""
    options = {"service.url": broker.url, "topic": f"{_NAMESPACE}/layouts"}
    frame = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS value", "CONCAT('k', id % 7) AS __key")
    frame.write.format("pulsar").options(**options).mode("append").save()
    spark.dataSource.register(HaltingSource)
    return options


def run(frame: Any, target: dict[str, str], directory: Path, name: str = "pulsar") -> None:
    query = (
        frame.writeStream.format(name)
        .options(**target)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)


def stream(spark: Any, source: dict[str, str], name: str) -> Any:
    options = {**source, "subscription": name, "startingOffsets": "earliest", "metadata": "__key"}
    return spark.readStream.format("pulsar").options(**options).load()


def values(spark: Any, target: dict[str, str]) -> list[int]:
    found = spark.read.format("pulsar").options(**target, value="string", metadata="none").load()
    return sorted(int(row.value) for row in found.collect())


def test_a_shuffle_is_refused_before_it_sends(
    spark: Any, broker: LiveBroker, source: dict[str, str], tmp_path: Path
) -> None:
    target = {"service.url": broker.url, "topic": f"{_NAMESPACE}/refused"}
    frame = stream(spark, source, "refused")
    with pytest.raises(Exception, match=r"nothing was sent.*staging=<directory>.*at-least-once.*repeatable=true"):
        run(frame.repartition("__key"), target, tmp_path / "refused")
    run(frame.repartition("__key"), {**target, "delivery": "at-least-once"}, tmp_path / "least")
    assert values(spark, target) == list(range(ROWS))


def test_what_is_staged_is_sent_once_whatever_the_layout(
    spark: Any, broker: LiveBroker, source: dict[str, str], tmp_path: Path
) -> None:
    """The first attempt has another number of tasks than its repetition, and stops when a part was sent."""
    stage = tmp_path / "stage"
    target = {"service.url": broker.url, "topic": f"{_NAMESPACE}/staged"}
    staged = {**target, "staging": str(stage)}
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        with pytest.raises(Exception, match="on purpose"):
            run(stream(spark, source, "staged").repartition("__key"), staged, tmp_path, "halting")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert 0 < len(values(spark, target)) < ROWS
    run(stream(spark, source, "staged").repartition(1, "value"), staged, tmp_path)
    assert values(spark, target) == list(range(ROWS))
    (query,) = stage.iterdir()
    assert [path.name for path in query.iterdir()] == ["0"]
