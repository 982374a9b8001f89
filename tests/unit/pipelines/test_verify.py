"""What `verify` says of a pipeline without a Spark session and without a broker."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.evidence.verify import verify
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint

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
