"""A table that is named by another path than it was made by: through a link, moved, copied."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from magnetar.lakehouse import Lake, open_lake
from magnetar.lakehouse.files.file_store import same_place
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import InvalidValueError, NotFoundError
from tests.unit.lakehouse.writing import batch_of, change_of, ids_of, options_of


def _table(kind: TableKind, directory: Path) -> None:
    options = options_of(kind, directory)
    for number in range(3):
        open_table(options).commit(change_of(options, batch_of([number, number + 10]), number))


@pytest.mark.parametrize("kind", TableKind)
def test_upkeep_through_a_link_keeps_every_row(kind: TableKind, tmp_path: Path) -> None:
    made, link = tmp_path / "made", tmp_path / "link"
    made.mkdir()
    link.symlink_to(made)
    _table(kind, made)
    through = open_lake(str(link / "t"), kind.value)
    assert through.vacuum(0) == []
    through.compact()
    through.vacuum(0)
    verified = open_lake(str(made / "t")).verify()
    assert (verified.rows, verified.wrong, verified.elsewhere) == (6, {}, [])


def test_rows_that_are_written_through_a_link_stay_in_an_iceberg_table(tmp_path: Path) -> None:
    made, link = tmp_path / "made", tmp_path / "link"
    made.mkdir()
    link.symlink_to(made)
    _table(TableKind.ICEBERG, made)
    options = options_of(TableKind.ICEBERG, link)
    open_table(options).commit(change_of(options, batch_of([3]), 3))
    lake = open_lake(str(made / "t"))
    assert lake.vacuum(0) == []
    assert ids_of(lake.read()) == [0, 1, 2, 3, 10, 11, 12] and lake.verify().elsewhere == []


@pytest.mark.parametrize("act", [Lake.history, Lake.verify, Lake.compact, lambda lake: lake.vacuum(0)])
def test_an_iceberg_table_that_was_moved_is_refused_and_keeps_its_files(act: object, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    _table(TableKind.ICEBERG, tmp_path / "made")
    shutil.copytree(tmp_path / "made", tmp_path / "copy")
    before = set(tmp_path.rglob("*"))
    assert callable(act)
    with pytest.raises(InvalidValueError, match=f"lies at file://{tmp_path}/made/t.*moved or copied"):
        act(open_lake(str(tmp_path / "copy" / "t")))
    assert set(tmp_path.rglob("*")) == before


def test_places_are_compared_by_where_they_lead(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert same_place(f"file://{tmp_path}/t/", str(tmp_path / "link" / "t"))
    assert same_place("s3a://bucket/t/", "s3://bucket/t")
    assert not same_place("s3://bucket/t", "s3://bucket/other")
    assert not same_place("s3://bucket/t", "/bucket/t")


def test_a_table_that_its_catalog_does_not_have_gets_no_other_table_into_its_directory(tmp_path: Path) -> None:
    """A vacuum of one of them would remove the files of the other."""
    made, beside = tmp_path / "made", tmp_path / "beside"
    made.mkdir()
    beside.mkdir()
    _table(TableKind.ICEBERG, made)
    (beside / "t").symlink_to(made / "t")  # the catalog is looked for beside the link
    options = options_of(TableKind.ICEBERG, beside)
    with pytest.raises(InvalidValueError, match="table is there that the catalog does not have"):
        open_table(options).check(batch_of([3]).schema)  # before a task writes files into it
    with pytest.raises(InvalidValueError, match="table is there that the catalog does not have"):
        open_table(options).commit(change_of(options, batch_of([3]), 3))
    assert ids_of(open_lake(str(made / "t")).read()) == [0, 1, 2, 10, 11, 12]


def _in_catalog(tmp_path: Path, table: str) -> dict[str, str]:
    return {
        "table": table,
        "catalog.type": "sql",
        "catalog.uri": f"sqlite:///{tmp_path}/catalog.sqlite",
        "catalog.warehouse": f"file://{tmp_path}",
    }


def test_a_path_of_another_table_of_the_catalog_keeps_its_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        options = options_of(TableKind.ICEBERG, tmp_path / name, **_in_catalog(tmp_path, f"lake.{name}"))
        open_table(options).commit(change_of(options, batch_of([1, 2]), 0))
    wrong = open_lake(str(tmp_path / "two" / "t"), "iceberg", _in_catalog(tmp_path, "lake.one"))
    with pytest.raises(InvalidValueError, match=f"lake.one lies at file://{tmp_path}/one/t, and it has none"):
        wrong.vacuum(0)
    right = open_lake(str(tmp_path / "two" / "t"), "iceberg", _in_catalog(tmp_path, "lake.two"))
    assert right.verify().rows == 2 and not right.verify().wrong


def test_a_path_beside_the_place_of_the_catalog_is_cleaned_if_the_table_has_files_there(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        options = options_of(TableKind.ICEBERG, tmp_path / name, **_in_catalog(tmp_path, "lake.one"))
        open_table(options).commit(change_of(options, batch_of([1, 2]), number))
    left = tmp_path / "two" / "t" / "data" / "left.parquet"
    left.touch()
    lake = open_lake(str(tmp_path / "two" / "t"), "iceberg", _in_catalog(tmp_path, "lake.one"))
    assert lake.vacuum(0) == ["data/left.parquet"]
    assert ids_of(lake.read()) == [1, 1, 2, 2]


def test_looking_for_a_table_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such directory"):
        open_lake(str(tmp_path / "none" / "t"), "iceberg").history()
    assert not list(tmp_path.iterdir())
