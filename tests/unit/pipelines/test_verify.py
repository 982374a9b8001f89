"""What `verify` says of a pipeline without a Spark session and without a broker."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.evidence.verify import verify
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.manifest import OutputPart
from magnetar.spark.durable_files import write_whole
from tests.unit.pipelines.histories import QUERY, TOPIC, history

FILE = """
name: first
broker: {service.url: "pulsar://127.0.0.1:1"}
checkpoint: work
sources: {numbers: {topic: numbers, value: json, fields: n BIGINT}}
sinks: {out: {from: numbers, format: noop}}
"""


def test_nothing_is_proven_of_a_pipeline_that_has_finished_no_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stopped, or refused, in its first micro-batch: there is a query and no manifest."""
    monkeypatch.setattr("magnetar.pipelines.evidence.verify.open_lookup", lambda _: contextlib.nullcontext())
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "metadata").write_text(json.dumps({"id": "4d0c0c9c-5f0e-4a7e-9f4e-2f9f3c8f2b11"}))
    PipelineCheckpoint(str(tmp_path / "work")).begin("first", {})
    report = verify(parse(FILE, str(tmp_path / "first.yaml")), None)
    assert report.findings == []
    assert report.unseen == ["micro-batches: none has ended yet, so there is nothing to compare"]


@pytest.mark.parametrize(
    ("sinks", "output", "unseen"),
    [
        ("{kept: {from: numbers, format: noop}}", ("topic", "persistent://public/default/t"), "sink out: 8 rows in"),
        ("{out: {from: numbers, format: noop}}", ("delta", "delta /lake/t"), "sink out: 8 rows in delta /lake/t"),
        ("{out: {from: numbers, format: noop}}", ("noop", "noop"), ""),
    ],
    ids=["another name", "another kind", "as it was"],
)
def test_outputs_that_the_file_does_not_have_any_more_are_not_proven(
    sinks: str, output: tuple[str, str], unseen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifests say that rows went there, and nothing of that was looked at."""
    monkeypatch.setattr("magnetar.pipelines.evidence.verify.open_lookup", lambda _: contextlib.nullcontext())
    checkpoint = PipelineCheckpoint(str(tmp_path / "work"))
    write_whole(checkpoint.directory / "metadata", json.dumps({"id": QUERY}))
    checkpoint.begin("first", {"flights": {TOPIC: ReadPosition(1, 0)}})
    parts: Any = {"out": OutputPart(*output, 8, "0" * 16, None), "dead-letters": OutputPart("topic", "d", 0, "0", None)}
    one = replace(history(1)[0], outputs=parts, checks={}, previous="", fingerprint="")
    checkpoint.write(one)
    file = FILE.replace("{out: {from: numbers, format: noop}}", sinks)
    report = verify(parse(file, str(tmp_path / "first.yaml")), None)
    found = [text for text in report.unseen if not text.startswith("sources:")]
    assert len(found) == bool(unseen)
    assert all(text.startswith(unseen) for text in found)
