"""A pipeline that is started again: with a file that was changed, or in a directory that is something else's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.execution.batch import BatchRun
from magnetar.pipelines.execution.run import prepare
from magnetar.pipelines.redrive import redrive_plans
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.manifest import SourcePart
from magnetar.spark.durable_files import write_whole
from tests.unit.pipelines.histories import QUERY, history, spark_log

FILE = """
name: first
broker: {service.url: "pulsar://127.0.0.1:1"}
checkpoint: work
sources: {one: {topic: one}, two: {topic: two}}
sinks: {out: {from: one, format: noop}}
"""
ONE, TWO = "persistent://public/default/one", "persistent://public/default/two"


def log_line(topic: str, entry: int) -> str:
    return json.dumps({"v": 1, "p": {topic: f"1:{entry}:0"}})


def checkpoint_of(directory: Path, batches: int) -> PipelineCheckpoint:
    """Return a checkpoint with sources one and two, in this order, after so many micro-batches."""
    checkpoint = PipelineCheckpoint(str(directory / "work"))
    write_whole(checkpoint.directory / "metadata", json.dumps({"id": QUERY}))
    checkpoint.begin("first", {"one": {ONE: ReadPosition(1, 0)}, "two": {TWO: ReadPosition(1, 0)}})
    for batch in range(batches + 1):
        spark_log(checkpoint.directory, batch, log_line(ONE, 10 * batch + 10), log_line(TWO, 10 * batch + 10))
    for one in history(batches):
        sources = {
            name: SourcePart(
                {topic: f"1:{10 * one.batch}:0"}, {topic: f"1:{10 * one.batch + 10}:0"}, {topic: 10}, {topic: "0"}
            )
            for name, topic in (("one", ONE), ("two", TWO))
        }
        checkpoint.write(replace(one, pipeline="first", sources=sources, previous="", fingerprint=""))
    return checkpoint


def ranges(directory: Path, checkpoint: PipelineCheckpoint, batch: int, *order: str) -> Any:
    analysis = cast("Any", type("A", (), {"streams": {}, "order": order, "streamed": None}))
    return BatchRun(parse(FILE, str(directory / "first.yaml")), checkpoint, analysis, print)._ranges(batch)


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_sources_in_another_order_do_not_read_each_other_s_topics(batches: int, tmp_path: Path) -> None:
    """Spark's log names no sources: it has their offsets by their order alone."""
    checkpoint = checkpoint_of(tmp_path, batches)
    begins, ends = (ReadPosition(1, 10 * batches + more) for more in (0, 10))
    assert ranges(tmp_path, checkpoint, batches, "one", "two") == {
        "one": ({ONE: begins}, {ONE: ends}),
        "two": ({TWO: begins}, {TWO: ends}),
    }
    with pytest.raises(InvalidValueError, match=r"source two.*another order.*new checkpoint"):
        ranges(tmp_path, checkpoint, batches, "two", "one")


def test_a_source_under_another_name_is_another_source(tmp_path: Path) -> None:
    """It has no beginning in the checkpoint, and its default subscription is a new one."""
    checkpoint_of(tmp_path, 0)
    renamed = FILE.replace("two: {topic: two}", "second: {topic: two}")
    with pytest.raises(InvalidValueError, match=r"written with the sources one, two.*now one, second"):
        prepare(parse(renamed, str(tmp_path / "first.yaml")))


def test_a_source_that_was_renamed_under_an_earlier_release_goes_on(tmp_path: Path) -> None:
    """That let it: the checkpoint began with one name, and its manifests have had another since."""
    checkpoint_of(tmp_path, 2)
    path = tmp_path / "work" / "pipeline.json"
    path.write_text(path.read_text().replace('"two"', '"before"'))
    prepare(parse(FILE, str(tmp_path / "first.yaml")))
    with pytest.raises(InvalidValueError, match=r"written with the sources one, two.*now before, one"):
        prepare(parse(FILE.replace("two: {topic: two}", "before: {topic: two}"), str(tmp_path / "first.yaml")))


@pytest.mark.parametrize("there", ["staged/notes.txt", "metadata", "manifests/0.json", "replays/0.json", "commits/0"])
def test_a_directory_of_something_else_is_no_checkpoint(there: str, tmp_path: Path) -> None:
    """A micro-batch removes ``staged``, whatever is in it."""
    write_whole(tmp_path / "work" / there, "{}")
    with pytest.raises(InvalidValueError, match=rf"{there.partition('/')[0]}.*empty or a new directory"):
        prepare(parse(FILE, str(tmp_path / "first.yaml")))
    assert (tmp_path / "work" / there).exists()


def test_a_replay_whose_file_is_gone_is_missed(tmp_path: Path) -> None:
    """The next one would get a number that was used, and take what that one took."""
    for number in (0, 2):
        text = json.dumps({"number": number, "end": {ONE: "1:4:0"}, "done": True})
        write_whole(tmp_path / "replays" / f"{number}.json", text)
    with pytest.raises(InvalidValueError, match=r"replays/1\.json is missing") as missed:
        redrive_plans(PipelineCheckpoint(str(tmp_path)))
    given_up = str(missed.value).partition("write ")[2].partition(" into it")[0]
    write_whole(tmp_path / "replays" / "1.json", given_up)
    assert [one.number for one in redrive_plans(PipelineCheckpoint(str(tmp_path)))] == [0, 1, 2]
