"""Declared pipelines on real Spark: bad records, crashes at every point, SIGKILL, and what `verify` makes of it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.bulk.positions import last_position
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START
from magnetar.columnar.single_entries.encryption import UndecryptableError
from magnetar.lakehouse import open_lake
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.model import Pipeline
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.evidence.verify import verify
from magnetar.pipelines.execution import batch, outputs
from magnetar.pipelines.execution.frames import StepError
from magnetar.pipelines.execution.plan import analyse, text
from magnetar.pipelines.execution.run import PipelineFailedError
from magnetar.pipelines.redrive import messages, redrive
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.dead_letter import parse_dead_letter
from magnetar.pipelines.state.status import partitions_there
from magnetar.pipelines.state.stored_messages import reader_options
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.sink.task_sink import TaskSink
from tests.spark.conftest import PARTITIONS
from tests.support.declared_pipeline import (
    NAMESPACE,
    ROWS,
    OnPurposeError,
    declared,
    fail,
    finish,
    keep,
    publish,
    stored,
)
from tests.support.encrypted_entries import pair
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_crashes_bad_records_and_replay(
    spark: Any, broker: LiveBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = f"""
steps:
  - name: doubles
    python: rows_steps:doubled
    with: {{factor: 2}}
sinks:
  out: {{topic: rows-out, key: "CAST(n AS STRING)"}}
  files: {{from: numbers, format: parquet, path: "{tmp_path}/files"}}
"""
    pipeline = declared(tmp_path, broker.url, "rows", rest)
    good = [json.dumps({"n": n}) for n in range(ROWS)]
    publish(broker.url, "rows", [*good[:50], "{bad", '{"n": 5000}', *good[50:]])

    def sent_and_fail(*arguments: Any, **more: Any) -> None:
        whole(*arguments, **more)
        raise OnPurposeError("after it was sent")

    whole = outputs.to_topic
    # Before it is sent, after it was sent, and before it is written down.
    for place, what, wrong in (
        (batch.BatchRun, "_send", fail),
        (outputs, "to_topic", sent_and_fail),
        (PipelineCheckpoint, "write", fail),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(place, what, wrong)
            with pytest.raises(PipelineFailedError, match="OnPurposeError") as caught:
                finish(spark, pipeline)
            assert "in micro-batch 0" in str(caught.value)
    watch = finish(spark, pipeline)
    assert (watch.rows_in, watch.dead, watch.dropped) == (ROWS + 2, 3, 1)
    found = sorted(json.loads(one.value or b"")["n2"] for one in stored(broker.url, "rows-out"))
    assert found == [2 * n for n in range(ROWS) if n not in (7, 11)]
    files = open_lake(f"{tmp_path}/files").read()
    assert sorted(files["n"].to_pylist()) == [n for n in range(ROWS) if n != 11]

    dead = {}
    for one in stored(broker.url, "rows-dead"):
        reported = parse_dead_letter(one.properties)
        assert reported is not None
        dead[reported.cause] = one, reported
    assert dead["decode"][0].value == b"{bad" and dead["decode"][0].key == b"k4"
    assert dead["small"][0].value == b'{"n": 5000}' and dead["small"][1].detail == "n < 1000 is not true"
    assert dead["marked"][1].kind == "row" and dead["marked"][1].detail == "seven is not wanted"
    with Lookup(broker.url) as lookup:
        at = dead["decode"][1].position
        options = source_options({"service.url": broker.url, "topic": "rows"})
        (original,) = messages(lookup, dead["decode"][1].topic, at, at._replace(batch=at.batch + 1), options)
        # A subscription holds the dead letters: one made now would stand at the end.
        for partition in range(PARTITIONS):
            with CheckpointSubscription(
                lookup, f"{NAMESPACE}/rows-dead-partition-{partition}", "rows.dead-letters"
            ) as subscription:
                assert subscription.hold(None).entry == 0
    assert original.value == b"{bad"
    assert verify(pipeline, None).findings == []

    assert redrive(pipeline, cause="decode").sent == 1
    assert redrive(pipeline).sent == 2
    assert redrive(pipeline).sent == 0
    watch = finish(spark, pipeline)
    assert (watch.rows_in, watch.dead) == (3, 3)
    assert verify(pipeline, spark).findings == []
    _spoil(spark, pipeline, broker.url)


def _spoil(spark: Any, pipeline: Pipeline, url: str) -> None:
    """Verification reports what is wrong, with its place."""
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    query = checkpoint.query_id()
    publish(url, "rows-out", ["forged"] * 3, f"spark.{query}/out.0", 99)
    (found,) = verify(pipeline, None).findings
    assert found.where == "batch 99, output out"
    path = checkpoint.directory / "manifests" / "1.json"
    kept = path.read_text()
    given = json.loads(kept)
    rows = given["sources"]["numbers"]["rows"]
    rows[next(iter(rows))] += 1
    path.write_text(json.dumps(given))
    reported = [str(one) for one in verify(pipeline, spark).findings]
    assert any(one.startswith("batch 1: the manifest was changed") for one in reported)
    assert any(one.startswith("batch 1, source numbers") and "has" in one and "now" in one for one in reported)
    path.unlink()
    assert str(verify(pipeline, None).findings[0]).startswith("batch 1: the manifest is missing")
    path.write_text(kept)


def start(file: Path, ready: Callable[[], bool]) -> subprocess.Popen[bytes]:
    """`magnetar pipeline run` in a session of its own; comes back when it is ``ready``, or has ended."""
    with file.with_suffix(".log").open("w") as log:
        command = [sys.executable, "-m", "magnetar.app.main", "pipeline", "run", str(file)]
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 120
    while not ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


def processes_of(session: int) -> list[int]:
    """All that are alive of a session, by Linux' /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, belongs = path.read_text().rpartition(") ")[2].split()[:4]
            if int(belongs) == session and state != "Z":
                found.append(int(path.parent.name))
    return found


@pytest.mark.drivers
@pytest.mark.timeout(600)
def test_a_killed_pipeline_loses_and_repeats_nothing(spark: Any, broker: LiveBroker, tmp_path: Path) -> None:
    """SIGKILL, then SIGTERM for all processes come while micro-batches run; the last run goes to the end."""
    pipeline = declared(
        tmp_path, broker.url, "killed", "sinks:\n  out: {topic: killed-out, value: to_json(struct(n))}\n"
    )
    keep(broker.url, "killed-out")
    publish(broker.url, "killed", [json.dumps({"n": n}) for n in range(200)])
    file = Path(pipeline.file)
    file.write_text(file.read_text().replace("available-now", "continuous"))
    checkpoint = PipelineCheckpoint(pipeline.checkpoint)
    process = start(file, lambda: checkpoint.staged(1).exists())
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    log = file.with_suffix(".log")
    assert checkpoint.batches()[-1] >= 1, log.read_text()
    process = start(file, lambda: 1 in checkpoint.manifest_numbers())
    for pid in processes_of(process.pid):
        # As systemd does: Java and the workers get it, too.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    assert process.wait(60) == 0, log.read_text()
    said = log.read_text()
    assert "stopped: 1 micro-batches" in said or "stopped: 2 micro-batches" in said, said
    assert "Traceback" not in said and "Error" not in said, said
    assert processes_of(process.pid) == []
    assert 0 <= checkpoint.committed() < 3
    finish(spark, pipeline)
    found = sorted(json.loads(one.value or b"")["n"] for one in stored(broker.url, "killed-out"))
    assert found == [n for n in range(200) if n != 11]
    assert verify(pipeline, spark).findings == []


def test_a_step_with_state_is_computed_by_the_stream(
    spark: Any, broker: LiveBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that keeps state comes from the stream; what follows it, and dead letters, from the micro-batch."""
    rest = """
output-mode: update
steps:
  - name: counts
    sql: SELECT n % 3 AS rest, count(*) AS times FROM numbers GROUP BY 1
  - name: named
    sql: SELECT concat('rest ', rest) AS name, times FROM counts
sinks:
  out: {topic: state-out, key: name}
"""
    pipeline = declared(tmp_path, broker.url, "state", rest)
    publish(broker.url, "state", [json.dumps({"n": n}) for n in range(90)] + ["{bad"])
    with monkeypatch.context() as patched:
        patched.setattr(PipelineCheckpoint, "write", fail)
        with pytest.raises(PipelineFailedError, match="OnPurposeError"):
            finish(spark, pipeline)
    watch = finish(spark, pipeline)
    assert (watch.rows_in, watch.dead, watch.dropped) == (91, 1, 1)
    times: dict[str, int] = {}
    for one in stored(broker.url, "state-out"):
        row = json.loads(one.value or b"")
        times[row["name"]] = max(times.get(row["name"], 0), row["times"])
    assert times == {"rest 0": 30, "rest 1": 30, "rest 2": 29}
    assert verify(pipeline, spark).findings == []
    shown = "\n".join(text(pipeline, analyse(spark, pipeline)))
    assert "step counts keeps state (Aggregate), output mode update" in shown


def test_what_spark_does_not_understand(spark: Any, broker: LiveBroker, tmp_path: Path) -> None:
    def reported(rest: str) -> str:
        with pytest.raises(StepError) as caught:
            analyse(spark, declared(tmp_path, broker.url, "wrong", rest))
        return str(caught.value)

    sink = "sinks:\n  out: {format: noop}\n"
    found = reported(f"steps:\n  - name: s\n    sql: SELECT m FROM numbers\n{sink}")
    assert "wrong.yaml:19:10: steps.s" in found and "`m`" in found and "Project" not in found
    one, other = ("SELECT n, count(*) AS c FROM numbers GROUP BY n", "SELECT max(n) AS x FROM numbers")
    sinks = "sinks:\n  a: {from: a, format: noop}\n  b: {from: b, format: noop}\n"
    found = reported(
        f"output-mode: update\nsteps:\n  - {{name: a, sql: '{one}'}}\n  - {{name: b, sql: '{other}'}}\n{sinks}"
    )
    assert "steps a and b keep state" in found


def test_an_expectation_that_fails(spark: Any, broker: LiveBroker, tmp_path: Path) -> None:
    rest = "sinks:\n  out: {topic: fails-out, expect: {even: {that: n % 2 = 0, otherwise: fail}}}\n"
    pipeline = declared(tmp_path, broker.url, "fails", rest)
    publish(broker.url, "fails", ['{"n": 2}', '{"n": 3}'])
    with pytest.raises(PipelineFailedError, match=r"1 rows at out do not meet 'even'.*\{'n': 3"):
        finish(spark, pipeline)
    with Lookup(broker.url) as lookup:
        assert partitions_there(lookup, f"{NAMESPACE}/fails-out") == []


def test_values_that_the_source_decodes(spark: Any, broker: LiveBroker, tmp_path: Path) -> None:
    """A value that could not be decoded keeps its bytes; another bad row is found again by its position."""
    rest = "sinks:\n  out: {topic: typed-out, value: CAST(value AS STRING)}\n"
    pipeline = declared(tmp_path, broker.url, "typed", rest)
    file = Path(pipeline.file)
    text = file.read_text().replace("value: json\n    fields: n BIGINT, at TIMESTAMP", "value: int32")
    file.write_text(text.replace("n < 1000", "value < 5").replace("n <> 11", "value <> 3"))
    pipeline = parse(file.read_text(), pipeline.file)
    publish(broker.url, "typed", ["\0\0\0\1", "\0\0\0\x09", "xx"])
    assert finish(spark, pipeline).dead == 2
    assert sorted(one.value or b"" for one in stored(broker.url, "typed-out")) == [b"1"]
    assert redrive(pipeline) == (2, 0, 0, 0, 0)
    back = sorted(one.value or b"" for one in stored(broker.url, "typed"))
    assert back == [b"\0\0\0\1", b"\0\0\0\x09", b"\0\0\0\x09", b"xx", b"xx"]


def test_large_and_encrypted_messages_go_back_as_they_came(spark: Any, broker: LiveBroker, tmp_path: Path) -> None:
    """What came in chunks and encrypted goes back unchanged; `verify` without the key counts what it cannot compare."""
    private, public = pair()
    keys = {name: tmp_path / f"{name}.pem" for name in ("private", "public")}
    keys["private"].write_text(private)
    keys["public"].write_text(public)
    rest = f"""
steps:
  - name: checked
    sql: SELECT * FROM numbers
    expect: {{short: {{that: length(value) < 1000, otherwise: dead-letter}}}}
sinks:
  out: {{topic: large-out, value: "substr(value, 1, 4)", encryption.publicKey: {keys["public"]}}}
"""
    text = Path(declared(tmp_path, broker.url, "large", rest).file).read_text()
    head, _, steps = text.partition("    value: json")
    head += f"    value: binary\n    decryption.privateKey: {keys['private']}\n"
    file = tmp_path / "large.yaml"
    file.write_text(head + steps[steps.index("\nsteps:") :])
    pipeline = parse(file.read_text(), str(file))
    # Nothing that compression could make small.
    large = random.Random(1).randbytes(6 << 20)
    options = sink_options(
        {
            "service.url": broker.url,
            "topic": f"{NAMESPACE}/large",
            "encryption.publicKey": str(keys["public"]),
            "pulsar.producer.chunkingEnabled": "true",
        }
    )
    rows = {"value": [b"good", large], "__key": ["a", "b"], "__messageProperties": [[], [("mine", "1")]]}
    types = [pa.binary(), pa.string(), pa.map_(pa.string(), pa.string())]
    arrays = [pa.array(column, kind) for column, kind in zip(rows.values(), types, strict=True)]
    TaskSink(options, None).run(iter([pa.RecordBatch.from_arrays(arrays, list(rows))]))
    assert finish(spark, pipeline).dead == 1
    assert redrive(pipeline) == (1, 0, 0, 0, 0)
    with Lookup(broker.url) as lookup:
        with pytest.raises(UndecryptableError):
            list(stored(broker.url, "large"))
        reads = reader_options(pipeline, "large", pipeline.topic_sources[0].options)
        back = [
            one
            for index in range(PARTITIONS)
            for name in [f"{NAMESPACE}/large-partition-{index}"]
            for one in messages(lookup, name, START, last_position(lookup, name), reads)
            if one.key == b"b"
        ]
    assert [(one.value == large, one.properties) for one in back] == [(True, (("mine", "1"),))] * 2
    report = verify(pipeline, spark)
    assert report.findings == [] and any("1 messages, which are encrypted" in text for text in report.unseen)
    file.write_text(file.read_text().replace("out: {", f"out: {{decryption.privateKey: {keys['private']}, "))
    report = verify(parse(file.read_text(), str(file)), None)
    assert report.findings == [] and not any("encrypted" in text for text in report.unseen)


def test_an_iceberg_table(spark: Any, broker: LiveBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash between the table's commit and the manifest `verify` passes; an old micro-batch is refused."""
    rest = f"""
sinks:
  lake: {{format: iceberg, path: "{tmp_path}/ice", options: {{partitionColumns: "bucket(4, n)"}}}}
"""
    pipeline = declared(tmp_path, broker.url, "ice", rest)
    publish(broker.url, "ice", [json.dumps({"n": n}) for n in range(20)])
    with monkeypatch.context() as patched:
        patched.setattr(PipelineCheckpoint, "write", fail)
        with pytest.raises(PipelineFailedError, match="OnPurposeError"):
            finish(spark, pipeline)
    finish(spark, pipeline)
    publish(broker.url, "ice", [json.dumps({"n": n}) for n in range(20, 40)])
    finish(spark, pipeline)
    table = open_lake(f"{tmp_path}/ice", "iceberg")
    assert sorted(table.read()["n"].to_pylist()) == [n for n in range(40) if n != 11]
    assert [(one.batch, one.rows) for one in table.history()] == [(0, 19), (1, 20)]
    assert verify(pipeline, None).findings == []
    query = PipelineCheckpoint(pipeline.checkpoint).query_id() or ""
    with pytest.raises(InvalidValueError, match=r"sink lake: .* up to 1, and this is 0: its checkpoint was set back"):
        outputs.write(pipeline, pipeline.sinks[0], spark.range(1), query, 0)
