"""What decision 016 wants of the Python processes and checkpoints of a session; how fast they are, benchmarks say."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    # Spark says so of pandas 3 when a function over Arrow is declared.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


def _about_worker(_: Any) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
    import pyspark

    yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__], "frozen": [gc.get_freeze_count()]})


def test_workers_take_the_installed_pyspark_and_freeze_what_a_task_has_imported(spark: Any, broker: LiveBroker) -> None:
    rows = spark.createDataFrame([(b"a",), (b"b",)], "value binary")
    rows.write.format("pulsar").option("service.url", broker.url).option("topic", "settled").mode("append").save()
    read = spark.read.format("pulsar").option("service.url", broker.url).option("topic", "settled").load()
    assert read.count() == 2
    # Spark keeps the workers that have just read, and gives them the next tasks.
    workers = spark.range(0, 4, 1, 4).mapInArrow(_about_worker, "file string, frozen long").collect()
    assert not any(".zip" in one.file for one in workers)
    assert any(one.frozen > 10_000 for one in workers), workers


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
