"""Micro-batches as files, without Spark: the first attempt to settle decides."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.spark.sink.staging_area import StagingArea
from tests.support.power_loss import LostError, Power


def batches(*values: list[str]) -> list[pa.RecordBatch]:
    return [pa.record_batch({"value": pa.array(one, pa.string())}) for one in values]


def read(stage: StagingArea, paths: list[str]) -> list[str]:
    return [text for batch in stage.read(paths) for text in batch["value"].to_pylist()]


def put(stage: StagingArea, batch: int, task: int, *values: list[str]) -> str:
    path = stage.put(batch, task, iter(batches(*values)))
    assert path is not None
    return path


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_first_list_is_the_micro_batch(tmp_path: Path, scheme: str) -> None:
    first = StagingArea(f"{scheme}{tmp_path}/", "q")
    late, early = put(first, 3, 1, ["c"]), put(first, 3, 0, [], ["a"], ["b"])
    assert first.put(3, 2, iter(batches([], []))) is None
    settled = first.settle(3, [late, early])
    assert read(first, settled) == ["a", "b", "c"]
    again = StagingArea(f"{scheme}{tmp_path}", "q")
    other = put(again, 3, 0, ["c", "b", "a"])
    assert again.settle(3, [other]) == settled
    assert read(again, again.settle(3, [])) == ["a", "b", "c"]


def test_an_empty_micro_batch_stays_empty(tmp_path: Path) -> None:
    stage = StagingArea(str(tmp_path), "q")
    assert stage.settle(0, []) == []
    assert stage.settle(0, [put(stage, 0, 0, ["x"])]) == []


def test_earlier_micro_batches_of_the_query_are_removed(tmp_path: Path) -> None:
    for query in ("q", "r"):
        stage = StagingArea(str(tmp_path), query)
        for batch in (8, 9, 10):
            stage.settle(batch, [put(stage, batch, 0, [str(batch)])])
    StagingArea(str(tmp_path), "q").forget_before(10)
    assert sorted(path.name for path in (tmp_path / "q").iterdir()) == ["10"]
    assert len(list((tmp_path / "r").iterdir())) == 3
    StagingArea(str(tmp_path), "never").forget_before(10)


def test_a_directory_that_arrow_does_not_know_is_named() -> None:
    with pytest.raises(InvalidValueError, match="option 'staging' is 'dbfs://x/y', which Arrow cannot open"):
        StagingArea("dbfs://x/y", "q")


def test_after_a_loss_of_power_all_is_settled_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power goes at every moment; then a second attempt comes with other rows."""
    lost = 0
    for last in range(20):
        directory = tmp_path / str(last)
        sent: list[str] = []
        with monkeypatch.context() as patched:
            power = Power(patched, directory, last)
            try:
                stage = StagingArea(str(directory), "q")
                sent = read(stage, stage.settle(0, [put(stage, 0, 0, ["a"]), put(stage, 0, 1, ["b"])]))
            except LostError:
                lost += 1
            power.lose()
        again = StagingArea(str(directory), "q")
        found = read(again, again.settle(0, [put(again, 0, 0, ["c"])]))
        assert found == (sent or found) and found in (["a", "b"], ["c"])
    assert 5 < lost < 20
