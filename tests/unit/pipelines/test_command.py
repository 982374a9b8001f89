"""What `pipeline verify` and `run` say and end with: "proven" only if everything was checked, and what needs no Spark
before it starts."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.pipelines.command import app
from magnetar.pipelines.declaration.parser import load
from magnetar.pipelines.evidence import verify
from magnetar.pipelines.evidence.discrepancy import Discrepancy
from magnetar.pipelines.evidence.verify import PipelineReport
from magnetar.pipelines.execution import run
from magnetar.pipelines.state import status
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.spark.session import errors_into
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


def _no_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    class Reached:
        def __enter__(self) -> Reached:
            return self

        def __exit__(self, *_: object) -> None: ...

        def reach(self) -> None: ...

    monkeypatch.setattr(status, "open_lookup", lambda _: Reached())
    monkeypatch.setattr(run, "local_session", lambda *_, **__: pytest.fail("Spark was started"))
    file = tmp_path / "f.yaml"
    file.write_text(TEXT)
    return file


def test_verify_of_what_never_ran_starts_no_spark_and_makes_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took a minute to say so, and left a checkpoint with a log in it."""
    file = _no_spark(tmp_path, monkeypatch)
    done = CliRunner().invoke(app, ["verify", str(file)])
    assert done.exit_code == 1 and "has not run yet: there is nothing to verify" in done.output
    assert [one.name for one in tmp_path.iterdir()] == ["f.yaml"]


def test_run_looks_at_its_checkpoint_before_it_starts_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _no_spark(tmp_path, monkeypatch)
    checkpoint = PipelineCheckpoint(str(tmp_path / "work"))
    name = load(file).name
    checkpoint.begin(name, {one.name: {} for one in load(file).topic_sources})
    with checkpoint.alone():
        done = CliRunner().invoke(app, ["run", str(file)])
    assert done.exit_code == 1 and "another process runs or replays this pipeline" in done.output
    file.write_text(file.read_text().replace(f"name: {name}", "name: other"))
    done = CliRunner().invoke(app, ["run", str(file)])
    assert done.exit_code == 1 and f"belongs to pipeline '{name}' and not to 'other'" in done.output


def test_a_signal_before_the_first_micro_batch_is_answered_at_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spark takes up to a minute to start, with its log in the place of standard error; the answer came after it."""
    stop = run.Stop()
    with stop.listening(), errors_into(tmp_path / "spark.log"):
        stop(signal.SIGINT, None)
    assert capfd.readouterr().err == "stopping as soon as Spark has started; once more to stop at once\n"
    with pytest.raises(KeyboardInterrupt):
        stop(signal.SIGINT, None)
    running = run.Stop()
    running.starting = False
    running(signal.SIGTERM, None)
    assert running.asked.is_set() and capfd.readouterr().err == "", "the query's own loop says it"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_verify_with_a_line(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM and SIGHUP ended it without a word."""
    (tmp_path / "f.yaml").write_text(TEXT)
    monkeypatch.setattr(verify, "verify", lambda *_, **__: signal.raise_signal(number))
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "f.yaml"), "--no-sources"])
    assert (done.exit_code, done.output) == (130, "magnetar: interrupted; nothing was changed\n")
