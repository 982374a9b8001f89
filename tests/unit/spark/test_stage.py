"""Micro-batches as files, without Spark: who settles first decides."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.spark.stage import Stage


def batches(*values: list[str]) -> list[pa.RecordBatch]:
    return [pa.record_batch({"value": pa.array(one, pa.string())}) for one in values]


def read(stage: Stage, paths: list[str]) -> list[str]:
    return [text for batch in stage.read(paths) for text in batch["value"].to_pylist()]


def put(stage: Stage, batch: int, task: int, *values: list[str]) -> str:
    path = stage.put(batch, task, iter(batches(*values)))
    assert path is not None
    return path


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_first_list_is_the_micro_batch(tmp_path: Path, scheme: str) -> None:
    first = Stage(f"{scheme}{tmp_path}/", "q")
    late, early = put(first, 3, 1, ["c"]), put(first, 3, 0, [], ["a"], ["b"])
    assert first.put(3, 2, iter(batches([], []))) is None
    settled = first.settle(3, [late, early])
    assert read(first, settled) == ["a", "b", "c"]
    again = Stage(f"{scheme}{tmp_path}", "q")
    other = put(again, 3, 0, ["c", "b", "a"])
    assert again.settle(3, [other]) == settled
    assert read(again, again.settle(3, [])) == ["a", "b", "c"]


def test_an_empty_micro_batch_stays_empty(tmp_path: Path) -> None:
    stage = Stage(str(tmp_path), "q")
    assert stage.settle(0, []) == []
    assert stage.settle(0, [put(stage, 0, 0, ["x"])]) == []


def test_earlier_micro_batches_of_the_query_are_removed(tmp_path: Path) -> None:
    for query in ("q", "r"):
        stage = Stage(str(tmp_path), query)
        for batch in (8, 9, 10):
            stage.settle(batch, [put(stage, batch, 0, [str(batch)])])
    Stage(str(tmp_path), "q").forget_before(10)
    assert sorted(path.name for path in (tmp_path / "q").iterdir()) == ["10"]
    assert len(list((tmp_path / "r").iterdir())) == 3
    Stage(str(tmp_path), "never").forget_before(10)


def test_a_directory_that_arrow_does_not_know_is_named() -> None:
    with pytest.raises(InvalidValueError, match="option 'staging' is 'dbfs://x/y', which Arrow cannot open"):
        Stage("dbfs://x/y", "q")
