"""What decisions 016, 063 and 065 want of a session's processes and checkpoints; benchmarks say how fast they are."""

from __future__ import annotations

import gc
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from magnetar.spark.forks import server_start
from magnetar.spark.java.options import option
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    # Spark says so of pandas 3 when a function over Arrow is declared.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def _about_worker(_: Any) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
    import pyspark

    about = {"file": pyspark.__file__, "frozen": gc.get_freeze_count(), "forked_from": _parent(os.getppid())}
    yield pa.RecordBatch.from_pylist([about])


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def test_workers_take_the_installed_pyspark_and_freeze_what_a_task_has_imported(spark: Any, broker: LiveBroker) -> None:
    rows = spark.createDataFrame([(b"a",), (b"b",)], "value binary")
    rows.write.format("pulsar").option("service.url", broker.url).option("topic", "settled").mode("append").save()
    read = spark.read.format("pulsar").option("service.url", broker.url).option("topic", "settled").load()
    assert read.count() == 2
    # Spark keeps the workers that have just read, and gives them the next tasks.
    workers = spark.range(0, 4, 1, 4).mapInArrow(_about_worker, "file string, frozen long, forked_from long").collect()
    assert not any(".zip" in one.file for one in workers)
    assert any(one.frozen > 10_000 for one in workers), workers
    server = server_start._Started.process
    assert server is not None and {one.forked_from for one in workers} == {server.pid}


def test_java_has_mapped_the_archive_of_classes(spark: Any) -> None:
    """`make test` makes it first; Java leaves out silently what does not hold for it."""
    said = option()
    if not said:
        pytest.skip("there is none: python -m magnetar.spark.class_archive makes it")
    archive = Path(shlex.split(said)[0].partition("=")[2])
    java = spark.sparkContext._gateway.proc.pid
    assert str(archive) in Path(f"/proc/{java}/maps").read_text(), said


def test_offsets_and_commits_of_a_local_checkpoint_have_checksums(
    spark: Any, broker: LiveBroker, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(b"a",)], "value binary")
    rows.write.format("pulsar").option("service.url", broker.url).option("topic", "summed").mode("append").save()
    stream = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", "summed")
    stream = stream.options(subscription="summed", startingOffsets="earliest").load()
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    query.start().awaitTermination(60)
    for log in ("offsets", "commits"):
        assert {file.name for file in (tmp_path / log).iterdir()} == {"0", ".0.crc"}
