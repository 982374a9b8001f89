"""The promises of each kind of table, by a driver's calls: exactly once, evolution, compaction, vacuum, history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest

from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import IncompatibleSchemaError, InvalidValueError
from tests.unit.lakehouse.writing import QUERY, batch_of, change_of, ids_of, options_of

pytestmark = pytest.mark.parametrize("kind", list(TableKind), ids=lambda kind: kind.value)
TEN = list(range(10))


def test_a_repeated_micro_batch_is_there_once(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    assert open_table(options).committed(QUERY) is None
    open_table(options).commit(change_of(options, batch_of(TEN), 0))
    # The driver died before Spark wrote that down: other tasks write the same rows into other files.
    again = open_table(options)
    assert again.commit(change_of(options, batch_of(TEN), 0)) is None
    assert again.commit(change_of(options, batch_of(range(10, 20)), 1)) is not None
    assert again.commit(change_of(options, batch_of(TEN), 0)) is None
    assert ids_of(again.read()) == list(range(20))
    assert again.committed(QUERY) == 1


def test_without_a_transaction_the_same_crash_shows_repeats(kind: TableKind, tmp_path: Path) -> None:
    """A check of the test above: it would fail if transactions were ignored."""
    options = options_of(kind, tmp_path)
    for _ in range(2):
        open_table(options).commit(change_of(options, batch_of(TEN), None, query=None))
    assert ids_of(open_table(options).read()) == sorted(TEN * 2)


def test_files_that_were_never_committed_are_not_seen_and_vacuum_removes_them(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    change_of(options, batch_of(TEN), 0)
    table = open_table(options)
    table.commit(change_of(options, batch_of([100, 101]), 1))
    lost = change_of(options, batch_of(TEN), 2)
    assert ids_of(table.read()) == [100, 101]
    orphans = {Path(file.path).name for file in lost.files}
    assert orphans <= {Path(path).name for path in table.vacuum(0, dry=True)}
    assert not orphans.intersection(Path(path).name for path in table.vacuum(1000))
    table.vacuum(0)
    assert not orphans.intersection(path.name for path in (tmp_path / "t").rglob("*"))
    assert ids_of(open_table(options).read()) == [100, 101]


def test_a_twin_of_the_driver_commits_the_same_micro_batch_at_the_same_time(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    one, two = open_table(options), open_table(options)
    one.commit(change_of(options, batch_of([0]), 0))
    # Both have seen version 0, and both have their files.
    assert two.committed(QUERY) == 0
    mine, theirs = change_of(options, batch_of(TEN), 1), change_of(options, batch_of(TEN), 1)
    assert [one.commit(mine) is None, two.commit(theirs) is None] == [False, True]
    assert len(open_table(options).read()) == 11


@pytest.mark.parametrize("query", [QUERY, "another"])
def test_another_driver_commits_between_the_look_and_the_commit(
    kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    options = options_of(kind, tmp_path)
    one, two = open_table(options), open_table(options)
    one.commit(change_of(options, batch_of([0]), 0))
    two.committed(QUERY)
    mine, theirs = change_of(options, batch_of([1, 2]), 1), change_of(options, batch_of([1, 2]), 1, query=query)
    # Where the schema is compared, the transaction was looked up and nothing is committed.
    fit = type(one)._fit  # type: ignore[attr-defined]  # all three have it

    def late(*arguments: object) -> object:
        monkeypatch.setattr(type(one), "_fit", fit)
        assert two.commit(theirs) is not None
        return fit(*arguments)

    monkeypatch.setattr(type(one), "_fit", late)
    assert (one.commit(mine) is None) == (query == QUERY)
    assert ids_of(open_table(options).read()) == ([0, 1, 2] if query == QUERY else [0, 1, 1, 2, 2])


def test_two_queries_in_one_table(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    one, two = open_table(options), open_table(options)
    for number in range(3):
        one.commit(change_of(options, batch_of([number]), number, query="one"))
        two.commit(change_of(options, batch_of([100 + number]), number, query="two"))
    assert ids_of(one.read()) == [0, 1, 2, 100, 101, 102]
    assert (two.committed("one"), one.committed("two")) == (2, 2)


def test_partitions_keep_every_row(kind: TableKind, tmp_path: Path) -> None:
    partitioning = "country, day(at), bucket(4, id)" if kind is TableKind.ICEBERG else "country"
    options = options_of(kind, tmp_path, partitioncolumns=partitioning)
    table = open_table(options)
    batch = batch_of(range(60))
    table.commit(change_of(options, batch, 0))
    assert table.read().sort_by("id").select(batch.schema.names).to_pylist() == batch.to_pylist()
    with pytest.raises(InvalidValueError, match=r"is partitioned by country.* and not by nothing"):
        open_table(options_of(kind, tmp_path)).commit(change_of(options_of(kind, tmp_path), batch, 1))


def test_new_columns_are_added_if_that_is_wanted_and_earlier_rows_have_null(kind: TableKind, tmp_path: Path) -> None:
    strict = options_of(kind, tmp_path)
    open_table(strict).commit(change_of(strict, batch_of(TEN), 0))
    wider = batch_of([10], price=pa.array([1.5]))
    with pytest.raises(IncompatibleSchemaError, match=r"column 'price' .double. that the table does not have"):
        open_table(strict).commit(change_of(strict, wider, 1))
    adding = options_of(kind, tmp_path, schemaevolution="add")
    table = open_table(adding)
    table.commit(change_of(adding, wider, 1))
    # And a query that does not know it yet goes on.
    open_table(strict).commit(change_of(strict, batch_of([11]), 2))
    rows = {row["id"]: row["price"] for row in table.read().to_pylist()}
    assert (rows[0], rows[10], rows[11]) == (None, 1.5, None)


def test_a_type_never_changes(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path, schemaevolution="add")
    open_table(options).commit(change_of(options, batch_of(TEN), 0))
    other = pa.RecordBatch.from_pydict({"id": ["text"]})
    with pytest.raises(IncompatibleSchemaError, match="column 'id' is int64 in the table and string in the query"):
        open_table(options).check(other.schema)
    with pytest.raises(IncompatibleSchemaError, match="'ID' is the table's 'id' in other letters"):
        open_table(options).check(pa.schema([("ID", pa.int64())]))


def test_compaction_keeps_rows_versions_and_transactions(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path, partitioncolumns="country")
    table = open_table(options)
    versions = [table.commit(change_of(options, batch_of(range(9 * n, 9 * n + 9)), n)) for n in range(4)]
    running = open_table(options)
    done = table.compact()
    assert (done.removed, done.added) == (24, 3)
    assert running.commit(change_of(options, batch_of(range(36, 45)), 4)) is not None
    assert running.commit(change_of(options, batch_of(range(36, 45)), 4)) is None
    assert ids_of(table.read()) == list(range(45))
    assert ids_of(table.read(versions[1])) == list(range(18))
    assert table.compact().version is not None
    assert ids_of(running.read()) == list(range(45))
    table.vacuum(0)
    assert ids_of(open_table(options).read()) == list(range(45))


def test_a_micro_batch_that_comes_while_files_are_put_together(
    kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind is TableKind.DELTA:
        pytest.skip("delta-rs rewrites inside: its own conflict check is what is relied on")
    options = options_of(kind, tmp_path)
    table, stream = open_table(options), open_table(options)
    for number in range(3):
        stream.commit(change_of(options, batch_of([number]), number))
    _after_writing(monkeypatch, lambda: stream.commit(change_of(options, batch_of([3]), 3)))
    assert table.compact().removed == 3
    assert ids_of(stream.read()) == [0, 1, 2, 3]


def test_of_two_compactions_one_wins(kind: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind is TableKind.DELTA:
        pytest.skip("delta-rs rewrites inside: its own conflict check is what is relied on")
    options = options_of(kind, tmp_path)
    table, other = open_table(options), open_table(options)
    for number in range(3):
        table.commit(change_of(options, batch_of([number]), number))
    _after_writing(monkeypatch, lambda: other.compact())
    assert table.compact().version is None
    assert ids_of(table.read()) == [0, 1, 2]


def _after_writing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Once, when a compaction has its files and before it commits them."""
    from magnetar.lakehouse.files.file_writer import FileWriter

    run = FileWriter.run

    def then(self: FileWriter, batches: object) -> object:
        files = run(self, batches)  # type: ignore[arg-type]  # handed through
        monkeypatch.setattr(FileWriter, "run", run)
        act()
        return files

    monkeypatch.setattr(FileWriter, "run", then)


def test_overwriting_replaces_the_rows_and_keeps_earlier_versions(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    table = open_table(options)
    first = table.commit(change_of(options, batch_of(TEN), 0))
    table.commit(change_of(options, batch_of([50]), 1, overwrite=True))
    assert table.commit(change_of(options, batch_of([50]), 1, overwrite=True)) is None
    assert (ids_of(table.read()), ids_of(table.read(first))) == ([50], TEN)


def test_history_says_whose_commit_it_is_and_how_far_the_topics_were(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    table = open_table(options)
    for number in range(2):
        table.commit(change_of(options, batch_of(TEN), number, positions={"t-partition-0": f"3:{number + 1}:0"}))
    commits = [one for one in open_table(options).history() if one.app is not None]
    assert [(one.app, one.batch, one.positions, one.rows) for one in commits] == [
        (QUERY, number, {"t-partition-0": f"3:{number + 1}:0"}, 10) for number in range(2)
    ]
    assert commits[0].version < commits[1].version
    assert commits[0].time_ms <= commits[1].time_ms


def test_a_version_that_is_not_there(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    table = open_table(options)
    table.commit(change_of(options, batch_of(TEN), 0))
    with pytest.raises(InvalidValueError, match="there is no version 99; the table's history has"):
        table.read(99)


def test_a_micro_batch_without_rows_commits_nothing(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)
    table = open_table(options)
    assert table.commit(change_of(options, batch_of([]), 0)) is None
    assert not table.exists()
