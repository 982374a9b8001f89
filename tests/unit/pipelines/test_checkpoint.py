"""The directory of a pipeline: files whole or not at all, Spark's log read, manifests in one chain."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import ConflictError, InvalidValueError
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.manifest import FIRST, ManifestError, from_text, print_text, to_text
from magnetar.spark.durable_files import write_whole
from tests.unit.pipelines.histories import TOPIC, history, spark_log


def test_ends_and_commits_are_read_from_the_files_of_spark(tmp_path: Path) -> None:
    checkpoint = PipelineCheckpoint(str(tmp_path))
    assert (checkpoint.query_id(), checkpoint.batches(), checkpoint.committed()) == (None, [], -1)
    write_whole(tmp_path / "metadata", '{"id":"q"}')
    spark_log(tmp_path, 0, json.dumps({"v": 1, "p": {TOPIC: "3:4:1"}}), "-")
    spark_log(tmp_path, 10, "-", "-")
    write_whole(tmp_path / "commits" / "0", "v1\n{}")
    (tmp_path / "offsets" / ".11.crc").write_text("x")
    assert (checkpoint.query_id(), checkpoint.batches(), checkpoint.committed()) == ("q", [0, 10], 0)
    assert checkpoint.ends(0) == [{TOPIC: ReadPosition(3, 4, 1)}, None]
    with pytest.raises(InvalidValueError, match="is gone"):
        checkpoint.ends(5)
    write_whole(tmp_path / "offsets" / "12", "v9\n{}\n-")
    with pytest.raises(InvalidValueError, match="v9"):
        checkpoint.ends(12)


def test_only_one_may_run(tmp_path: Path) -> None:
    one, other = PipelineCheckpoint(str(tmp_path)), PipelineCheckpoint(str(tmp_path))
    with one.alone(), pytest.raises(ConflictError, match="another process"), other.alone():
        pass
    with PipelineCheckpoint(str(tmp_path)).alone():
        pass


def test_a_new_checkpoint_records_where_sources_begin(tmp_path: Path) -> None:
    checkpoint = PipelineCheckpoint(str(tmp_path))
    assert checkpoint.identity() is None
    checkpoint.begin("p", {"flights": {TOPIC: ReadPosition(3, 4)}})
    assert checkpoint.starts() == {"flights": {TOPIC: ReadPosition(3, 4)}}


def test_manifests_are_chained(tmp_path: Path) -> None:
    checkpoint = PipelineCheckpoint(str(tmp_path))
    given = [replace(one, previous="", fingerprint="") for one in history(3)]
    written = [checkpoint.write(one) for one in given]
    assert written[0].previous == FIRST
    assert [one.previous for one in written[1:]] == [one.fingerprint for one in written[:-1]]
    again, wrong = PipelineCheckpoint(str(tmp_path)).manifests()
    assert again == written and not wrong
    assert not list(tmp_path.glob("manifests/.*"))
    with pytest.raises(InvalidValueError, match="missing"):
        checkpoint.write(replace(given[2], batch=9))


_MANIFEST = to_text(history(1)[0])


@pytest.mark.parametrize(
    ("name", "content", "read", "said"),
    [
        ("pipeline.json", b"{", "identity", "pipeline.json is damaged"),
        ("pipeline.json", b"[" * 100_000, "identity", "pipeline.json is damaged"),
        ("pipeline.json", b"\xff\xfe", "identity", "pipeline.json is damaged"),
        ("pipeline.json", b"[]", "identity", "it names no pipeline"),
        ("pipeline.json", b'{"pipeline": "p"}', "starts", "does not say where sources began"),
        ("pipeline.json", b'{"pipeline": "p", "start": {"s": {"t": "x"}}}', "starts", "where sources began"),
        ("staged/0/staged.json", b"{", "staged_results", "staged.json is damaged"),
        ("staged/0/staged.json", b"\xff", "staged_results", "staged.json is damaged"),
        ("staged/0/staged.json", b"{}", "staged_results", "it says nothing of outputs"),
        ("staged/0/staged.json", b'{"outputs": {}, "rows": 1}', "staged_results", "it says nothing of sources"),
        ("metadata", b"\xff\xfe", "query_id", "metadata is damaged"),
        ("metadata", b"[]", "query_id", "is no file of Spark's"),
        ("offsets/0", b"\xff", "ends", "offsets/0 is damaged"),
        ("offsets/0", b'v1\n{}\n{"v":1,"p":{"t":"x"}}', "ends", "offsets/0: "),
        ("manifests/0.json", b"\xff\xfe", "manifest", "0.json is damaged"),
        ("manifests/0.json", b"[" * 100_000, "manifest", "0.json is no manifest"),
        ("manifests/0.json", _MANIFEST.replace('"batch": 0', '"batch": "0"').encode(), "manifest", "is no number"),
        ("manifests/0.json", _MANIFEST.replace('"batch": 0', '"batch": 4').encode(), "manifest", "renamed or copied"),
        ("manifests/0.json", _MANIFEST.replace("ended_ms", "ended").encode(), "manifest", "0.json is no manifest"),
    ],
)
def test_a_damaged_file_is_named(name: str, content: bytes, read: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_bytes(content)
    checkpoint = PipelineCheckpoint(str(tmp_path))
    with pytest.raises(InvalidValueError, match=said):
        getattr(checkpoint, read)(*([0] if read in ("ends", "manifest", "staged_results") else []))


def test_what_is_no_manifest_is_named(tmp_path: Path) -> None:
    write_whole(tmp_path / "manifests" / "0.json", "{}")
    found, wrong = PipelineCheckpoint(str(tmp_path)).manifests()
    assert not found and "0.json is no manifest" in wrong[0]
    text = to_text(history(1)[0])
    assert from_text(text, "x") == history(1)[0]
    with pytest.raises(ManifestError, match="another release"):
        from_text(text.replace('"v": 1', '"v": 7'), "x")


def test_prints_are_sums_modulo_their_size() -> None:
    assert print_text((1 << 64) - 1 + 2) == print_text(1) == f"{1:016x}"
