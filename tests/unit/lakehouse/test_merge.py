"""Change capture without Spark: micro-batches of last changes into a Delta table, against a dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.lakehouse.lake import open_lake
from magnetar.lakehouse.merge import merge_once, merged
from magnetar.lakehouse.options import Kind
from magnetar.model.errors import IncompatibleSchemaError, InvalidValueError
from tests.unit.lakehouse.writing import options_of

CHANGES = st.dictionaries(st.integers(0, 5), st.none() | st.integers(0, 99), max_size=5)


def rows_of(changes: dict[int, int | None]) -> pa.Table:
    """A key whose value is None goes."""
    return pa.table(
        {
            "Id": pa.array(list(changes), pa.int64()),
            "to tal": pa.array(list(changes.values()), pa.int64()),
            "__deleted": pa.array([value is None for value in changes.values()]),
        }
    )


def rows_in(path: Path) -> dict[Any, Any]:
    return {row["Id"]: row["to tal"] for row in open_lake(str(path)).read().to_pylist()}


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(CHANGES, st.booleans()), min_size=1, max_size=4))
def test_the_table_is_what_the_changes_make(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[dict[int, int | None], bool]]
) -> None:
    options = options_of(Kind.DELTA, tmp_path_factory.mktemp("merge"))
    naive: dict[int, int] = {}
    written = False
    for number, (changes, again) in enumerate(batches):
        merge_once(options, rows_of(changes), ["Id"], "q", number)
        if again and changes:
            # Another micro-batch of that number would be a mistake of Spark's, and shows that nothing is done.
            assert merge_once(options, rows_of(dict.fromkeys(changes, 1000)), ["Id"], "q", number) is None
        for key, value in changes.items():
            if value is None:
                naive.pop(key, None)
            else:
                naive[key] = value
        written = written or bool(changes)
        if written:
            assert rows_in(Path(options.path)) == naive


def test_positions_new_columns_and_types(tmp_path: Path) -> None:
    (tmp_path / "c" / "offsets").mkdir(parents=True)
    (tmp_path / "c" / "offsets" / "0").write_text('v1\n{}\n{"v": 1, "p": {"a": "1:2:0"}}')
    options = options_of(Kind.DELTA, tmp_path)
    merge_once(options, rows_of({1: 1}), ["Id"], "q", 0, str(tmp_path / "c"))
    assert open_lake(options.path).positions() == {"a": "1:2:0"}
    wider = rows_of({2: 2}).append_column("more", pa.array(["x"]))
    with pytest.raises(IncompatibleSchemaError, match="column 'more'"):
        merge_once(options, wider, ["Id"], "q", 1)
    merge_once(options_of(Kind.DELTA, tmp_path, schemaevolution="add"), wider, ["Id"], "q", 1)
    assert [row["more"] for row in open_lake(options.path).read().sort_by("Id").to_pylist()] == [None, "x"]


def test_mistakes(tmp_path: Path) -> None:
    options = options_of(Kind.DELTA, tmp_path)
    keyless = pa.table({"Id": pa.array([None], pa.int64()), "__deleted": [False]})
    with pytest.raises(InvalidValueError, match="micro-batch 3: 1 changes have no 'Id'"):
        merge_once(options, keyless, ["Id"], "q", 3)
    with pytest.raises(InvalidValueError, match="needs the columns that identify a row"):
        merged(options.path, [])


def test_a_removal_that_is_null_is_none(tmp_path: Path) -> None:
    options = options_of(Kind.DELTA, tmp_path)
    rows = rows_of({1: 10, 2: 20})
    unknown = rows.set_column(2, "__deleted", pa.array([None, False], pa.bool_()))
    for number in range(2):
        merge_once(options, unknown, ["Id"], "q", number)
        assert rows_in(Path(options.path)) == {1: 10, 2: 20}
