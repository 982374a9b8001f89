"""Lakehouse sinks on real Spark: streams of a topic, crashes of the driver, and change capture."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from magnetar.lakehouse import open_lake, register
from magnetar.lakehouse.merge import POSITION, merged
from magnetar.lakehouse.model.options import TableKind
from tests.spark.lake_driver import BATCHES, HALTED_AT, QUERIES, ROWS
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
NUMBERS = itertools.count()
_PATIENCE = 120


@pytest.fixture
def source(spark: Any, broker: LiveBroker) -> dict[str, str]:
    """Options of a topic of its own, with the lakehouse formats registered."""
    register(spark)
    topic = f"persistent://public/default/lake-{next(NUMBERS)}"
    return {"service.url": broker.url, "topic": topic}


def publish(spark: Any, source: dict[str, str], sql: str) -> None:
    spark.sql(sql).write.format("pulsar").options(**source).mode("append").save()


def run(query: Any) -> None:
    """Run a query to the end of what is there."""
    started = query.trigger(availableNow=True).start()
    started.awaitTermination(_PATIENCE)


@pytest.mark.parametrize("kind", list(TableKind), ids=lambda kind: kind.value)
def test_a_stream_and_the_way_back_to_its_topic(
    spark: Any, source: dict[str, str], tmp_path: Path, kind: TableKind
) -> None:
    publish(spark, source, "SELECT string(id) AS value, string(id % 7) AS __key FROM range(300)")
    stream = spark.readStream.format("pulsar").options(**source, subscription="lake", value="string", metadata="__key")
    rows = stream.options(startingOffsets="earliest", maxMessagesPerTrigger="100").load()
    rows = rows.selectExpr("int(value) AS id", "int(value) % 2 AS half", "__key AS key")
    partitioning = "bucket(2, id)" if kind is TableKind.ICEBERG else "half"
    run(
        rows.writeStream.format(f"magnetar-{kind.value}")
        .options(path=str(tmp_path / "t"), checkpointLocation=str(tmp_path / "c"), partitionColumns=partitioning)
        .option("compactEvery", "2")
    )
    lake = open_lake(str(tmp_path / "t"))
    assert lake.kind is kind
    assert sorted(lake.read().column("id").to_pylist()) == list(range(300))
    commits = [one for one in lake.history() if one.app is not None]
    assert ([one.batch for one in commits], [one.rows for one in commits]) == ([0, 1, 2], [100, 100, 100])
    assert len(lake.history()) > 3, "compacted"
    # What the query read between two versions is what the later one has more.
    first, last = commits[0].version, commits[1].version
    between = spark.read.format("pulsar").options(**source, value="string", metadata="none")
    between = between.options(startingOffsets=lake.offsets(first), endingOffsets=lake.offsets(last)).load()
    before, after = (set(lake.read(version).column("id").to_pylist()) for version in (first, last))
    assert {int(row.value) for row in between.collect()} == after - before
    assert len(after - before) == 100
    topic, place = next(iter(lake.positions(first).items()))
    assert lake.version_holding(topic, place) in (commits[1].version, commits[2].version)
    # Another query with another type fails before it writes.
    with pytest.raises(Exception, match="column 'id' is int32 in the table and string in the query"):
        spark.sql("SELECT 'x' AS id, 1 AS half").write.format(f"magnetar-{kind.value}").mode("append").options(
            partitionColumns=partitioning
        ).save(str(tmp_path / "t"))


def test_batch_writes_with_a_name_are_there_once(spark: Any, source: dict[str, str], tmp_path: Path) -> None:
    del source
    for version, mode in ((1, "append"), (1, "append"), (2, "append"), (3, "overwrite"), (3, "overwrite")):
        writer = spark.range(10).write.format("magnetar-parquet").options(txnAppId="job", txnVersion=str(version))
        writer.mode(mode).save(str(tmp_path / "t"))
    assert [one.rows for one in open_lake(str(tmp_path / "t")).history()] == [10, 10, 10]
    # Any reader of Parquet sees the same.
    assert spark.read.parquet(str(tmp_path / "t")).count() == 10


def test_changes_become_a_table(spark: Any, source: dict[str, str], tmp_path: Path) -> None:
    """Each of ten keys changes three times, the last change of key 3 is a tombstone; half come later. One task
    writes."""
    changes = (
        "SELECT IF(id = 23, NULL, to_json(named_struct('total', id))) AS value, string(id % 10) AS __key "
        "FROM range({}, {}, 1, 1)"
    )
    stream = spark.readStream.format("pulsar").options(**source, subscription="changes", startingOffsets="earliest")
    rows = stream.option("metadata", ",".join(["__key", *POSITION])).load()
    rows = rows.selectExpr("string(__key) AS id", "from_json(string(value), 'total INT').total AS total", *POSITION)
    sink = merged(str(tmp_path / "t"), ["id"], deleted="total IS NULL", checkpoint=str(tmp_path / "c"))
    for first, last in ((0, 30), (30, 35)):
        publish(spark, source, changes.format(first, last))
        run(rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "c")))
    # Spark's own note of the last micro-batch is lost: it comes again.
    for name in ("1", ".1.crc"):
        (tmp_path / "c" / "commits" / name).unlink()
    run(rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "c")))
    lake = open_lake(str(tmp_path / "t"))
    found = {row["id"]: row["total"] for row in lake.read().to_pylist()}
    assert found == {**{str(key): 20 + key for key in range(10)}, **{str(key): 30 + key for key in range(5)}}
    assert [one.batch for one in lake.history() if one.app is not None] == [0, 1]
    assert json.loads(lake.offsets())


@pytest.mark.drivers
def test_a_driver_is_killed_between_files_and_commit_and_after_the_commit(tmp_path: Path) -> None:
    """An attempt of a task fails too. A query without transactions shows what would be repeated."""
    halted = _drive(tmp_path, "halt", lambda: all((tmp_path / f"{name}.halted").exists() for name in QUERIES))
    assert halted, (tmp_path / "driver.log").read_text()[-4000:]
    assert _drive(tmp_path, "finish", lambda: False), (tmp_path / "driver.log").read_text()[-4000:]
    for name in QUERIES:
        ids = sorted(open_lake(str(tmp_path / name)).read().column("value").to_pylist())
        if name == "wrong":
            repeated = list(range(HALTED_AT * ROWS, (HALTED_AT + 1) * ROWS))
            assert ids == sorted([*range(BATCHES * ROWS), *repeated])
        else:
            assert ids == list(range(BATCHES * ROWS)), name


def _drive(directory: Path, mode: str, stopped: Any) -> bool:
    """One life of the driver: until ``stopped``, then SIGKILL to it and its Java; or to its own end."""
    with (directory / "driver.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.lake_driver", str(directory), mode],
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
    deadline = time.monotonic() + _PATIENCE
    try:
        while process.poll() is None and time.monotonic() < deadline:
            if stopped():
                return True
            time.sleep(0.1)
        return process.returncode == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
