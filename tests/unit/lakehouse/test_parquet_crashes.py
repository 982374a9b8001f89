"""The commit log of a directory of Parquet under crashes at every step, against a list of rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.parquet_log import commit_path
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import InvalidValueError
from tests.unit.lakehouse.writing import batch_of, change_of, ids_of, options_of


class Crash(Exception):
    """The driver is gone."""


class Fuse:
    """Lets so many changes of the store happen, then none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for name in ("create", "move", "delete"):
            monkeypatch.setattr(FileStore, name, self._guarded(getattr(FileStore, name)))

    def _guarded(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any) -> Any:
            if self.left is not None:
                if not self.left:
                    raise Crash
                self.left -= 1
            return act(*arguments)

        return guarded


def plain_ids(directory: Path) -> list[int]:
    """Read the directory as a reader without the log does."""
    files = [str(path) for path in directory.rglob("*.parquet") if "/_" not in str(path)]
    return sorted(ds.dataset(files).to_table(columns=["id"]).column("id").to_pylist()) if files else []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(steps=[("append", 9), ("append", 9), ("compact", 2)], partitioned=False)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "append", "compact", "vacuum"]), st.integers(0, 9)), max_size=7
    ),
    partitioned=st.booleans(),
)
def test_every_micro_batch_once_wherever_a_driver_dies(
    steps: list[tuple[str, int]],
    partitioned: bool,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = tmp_path_factory.mktemp("lake")
    options = options_of(TableKind.PARQUET, directory, **({"partitioncolumns": "country"} if partitioned else {}))
    fuse = Fuse(monkeypatch)
    expected: list[int] = []
    for number, (step, changes) in enumerate(steps):
        for left in (changes, None):
            # With a fuse the first time; a driver that died is followed by another that does the same again.
            fuse.left = None
            change = change_of(options, batch_of(range(4 * number, 4 * number + 4)), number)
            table = open_table(options)
            fuse.left = left
            try:
                match step:
                    case "append":
                        table.commit(change)
                    case "compact":
                        table.compact()
                    case _:
                        table.vacuum(0)
                break
            except Crash:
                fuse.left = None
                # Between its death and the next driver readers see whole micro-batches, and plain ones no row twice.
                seen = ids_of(open_table(options).read()) if open_table(options).exists() else []
                assert seen in (expected, expected + list(range(4 * number, 4 * number + 4)))
                plain = plain_ids(directory / "t")
                assert len(plain) == len(set(plain))
                assert set(plain) <= set(seen)
        fuse.left = None
        if step == "append":
            expected += range(4 * number, 4 * number + 4)
    if expected:
        assert ids_of(open_table(options).read()) == expected
        open_table(options).vacuum(0)
        assert plain_ids(directory / "t") == expected
    monkeypatch.undo()


def test_versions_that_read_the_whole_log_and_from_a_checkpoint_agree(tmp_path: Path) -> None:
    options = options_of(TableKind.PARQUET, tmp_path)
    table = open_table(options)
    for number in range(40):
        table.commit(change_of(options, batch_of([number]), number))
    assert (tmp_path / "t" / "_magnetar_log" / f"{31:020}.checkpoint.json").exists()
    # The checkpoint is what a start reads: without the commits before it the newest version is all there.
    fresh = open_table(options)
    assert (ids_of(fresh.read()), fresh.committed("query-1")) == (list(range(40)), 39)
    (tmp_path / "t" / commit_path(3)).unlink()
    assert ids_of(open_table(options).read()) == list(range(40))


def test_a_log_of_a_later_release_or_with_a_gap_is_refused(tmp_path: Path) -> None:
    options = options_of(TableKind.PARQUET, tmp_path)
    table = open_table(options)
    for number in range(3):
        table.commit(change_of(options, batch_of([number]), number))
    path = tmp_path / "t" / commit_path(2)
    path.write_text(path.read_text().replace('"v": 1', '"v": 9', 1))
    with pytest.raises(InvalidValueError, match="is of format 9, this release knows 1"):
        open_table(options).read()
    path.write_text(path.read_text().replace('"v": 9', '"v": 1', 1))
    (tmp_path / "t" / commit_path(1)).unlink()
    with pytest.raises(InvalidValueError, match="the log lacks commits 1 to 1"):
        open_table(options).read()


def test_vacuum_tells_a_version_that_is_gone(tmp_path: Path) -> None:
    options = options_of(TableKind.PARQUET, tmp_path)
    table = open_table(options)
    for number in range(2):
        table.commit(change_of(options, batch_of([number]), number))
    table.compact()
    table.vacuum(0)
    with pytest.raises(Exception, match="vacuum has removed what this version needs"):
        table.read(1)
