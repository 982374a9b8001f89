"""`pipeline verify` says "proven" only if everything was checked, and ends with its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.pipelines.command import app
from magnetar.pipelines.evidence import verify
from magnetar.pipelines.evidence.discrepancy import Discrepancy
from magnetar.pipelines.evidence.verify import PipelineReport
from magnetar.pipelines.execution import run
from magnetar.pipelines.state import status
from tests.unit.pipelines.example import TEXT


@pytest.mark.parametrize(
    ("findings", "unseen", "code", "said"),
    [
        ([], [], 0, "proven: nothing skipped, nothing repeated, nothing changed"),
        (
            [],
            ["sources: 7 rows"],
            4,
            "NOT LOOKED AT: sources: 7 rows\nnothing wrong in what was looked at, which is not",
        ),
        ([Discrepancy("batch 3", "it is gone")], [], 3, "WRONG: batch 3: it is gone\n1 findings"),
        ([Discrepancy("batch 3", "it is gone")], ["x"], 3, "NOT LOOKED AT: x\nWRONG: batch 3: it is gone\n1 findings"),
    ],
)
def test_how_verify_ends(
    findings: list[Discrepancy],
    unseen: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "f.yaml").write_text(TEXT)
    monkeypatch.setattr(verify, "verify", lambda *_, **__: PipelineReport(["7 manifests"], findings, unseen))
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "f.yaml"), "--no-sources"])
    assert (done.exit_code, done.output.startswith("7 manifests\n")) == (code, True)
    assert said in done.output and ("proven" in done.output) == (code == 0)


def test_run_asks_the_broker_before_it_starts_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "open_lookup", lambda pipeline: pipeline.login.lookup(pipeline.service_url, 0.1))
    monkeypatch.setattr(run, "local_session", lambda *_, **__: pytest.fail("Spark was started"))
    (tmp_path / "f.yaml").write_text(TEXT.replace("localhost:6650", "127.0.0.1:1"))
    done = CliRunner().invoke(app, ["run", str(tmp_path / "f.yaml")])
    assert done.exit_code == 1
    assert "cannot connect to the broker at" in done.output
    assert [one.name for one in tmp_path.iterdir()] == ["f.yaml"], "there is no checkpoint"


def test_since_narrows_what_is_proven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.yaml").write_text(TEXT)
    monkeypatch.setattr(verify, "verify", lambda *_, **__: PipelineReport([], [], []))
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "f.yaml"), "--no-sources", "--since", "5"])
    assert done.exit_code == 0 and "proven since micro-batch 5: nothing skipped" in done.output
