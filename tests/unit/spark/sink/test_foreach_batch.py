"""Where `staged` keeps micro-batches; that it works is tested with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from magnetar.spark.sink import foreach_batch
from tests.support.power_loss import LostError, Power


def test_a_new_checkpoint_sends_nothing_that_an_earlier_one_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()
    monkeypatch.setattr(foreach_batch, "_local", lambda *_: None)
    monkeypatch.setattr(foreach_batch, "_exists", lambda _, path: path in there)
    monkeypatch.setattr(foreach_batch, "_remove", lambda _, path: there.discard(f"{path}/_SUCCESS"))
    send = foreach_batch.staged("/stage/", {"service.url": "pulsar://127.0.0.1:1", "topic": "t"})

    def written(query: str, batch: int) -> list[Any]:
        result = MagicMock()
        result.sparkSession.sparkContext.getLocalProperty.return_value = query
        parquet = result.write.mode.return_value.parquet
        parquet.side_effect = lambda path: there.add(f"{path}/_SUCCESS")
        send(result, batch)
        return [one.args[0] for one in parquet.call_args_list]

    assert written("q1", 0) == ["/stage/q1/0"]
    assert written("q1", 0) == []
    assert written("q2", 0) == ["/stage/q2/0"]
    assert written("q1", 1) == ["/stage/q1/1"]
    assert there == {"/stage/q1/1/_SUCCESS", "/stage/q2/0/_SUCCESS"}


def test_after_a_loss_of_power_all_is_there_or_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power goes at every moment of a micro-batch of two files."""
    positions = ("part-0.parquet", ".part-0.parquet.crc", "_SUCCESS")
    lost = whole = 0
    for last in range(20):
        directory = tmp_path / str(last) / "q" / "0"
        directory.mkdir(parents=True)
        for name in positions:
            (directory / name).write_text(name)
        with monkeypatch.context() as patched:
            power = Power(patched, directory, last)
            try:
                foreach_batch.make_durable(directory)
            except LostError:
                lost += 1
            power.lose()
        if (directory / foreach_batch._OURS).exists():
            whole += 1
            assert [(directory / name).read_text() for name in positions] == list(positions)
    assert 3 < lost < 20
    assert whole >= 20 - lost, "what is whole says so"


def test_which_rows_a_task_sends_depends_on_no_setting_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other tasks a repetition would take rows for new ones that another task has sent."""
    for name in ("_local", "_exists", "_remove"):
        monkeypatch.setattr(foreach_batch, name, lambda *_: None)
    result = MagicMock()
    result.sparkSession.sparkContext.getLocalProperty.return_value = "q"
    foreach_batch.staged("/stage", {"service.url": "pulsar://127.0.0.1:1", "topic": "t"})(result, 0)
    spark = result.sparkSession
    assert {one.args[0].rpartition(".")[2] for one in spark.conf.set.call_args_list} == {
        *("maxPartitionBytes", "openCostInBytes", "minPartitionNum", "maxPartitionNum")
    }
    assert spark.read.options.call_args.kwargs == {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
