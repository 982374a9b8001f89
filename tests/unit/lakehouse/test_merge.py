"""Change capture without Spark: micro-batches of last changes merged into a Delta table, against a dictionary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.lakehouse.lake import open_lake
from magnetar.lakehouse.merge import merge_once, merged
from magnetar.lakehouse.model.options import TableKind
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
    options = options_of(TableKind.DELTA, tmp_path_factory.mktemp("merge"))
    naive: dict[int, int] = {}
    written = False
    for number, (changes, again) in enumerate(batches):
        merge_once(options, rows_of(changes), ["Id"], "q", number)
        if again and changes:
            # With other rows, which shows that nothing is done.
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
    options = options_of(TableKind.DELTA, tmp_path)
    merge_once(options, rows_of({1: 1}), ["Id"], "q", 0, str(tmp_path / "c"))
    assert open_lake(options.path).positions() == {"a": "1:2:0"}
    wider = rows_of({2: 2}).append_column("more", pa.array(["x"]))
    with pytest.raises(IncompatibleSchemaError, match="column 'more'"):
        merge_once(options, wider, ["Id"], "q", 1)
    merge_once(options_of(TableKind.DELTA, tmp_path, schemaevolution="add"), wider, ["Id"], "q", 1)
    assert [row["more"] for row in open_lake(options.path).read().sort_by("Id").to_pylist()] == [None, "x"]


def test_mistakes_are_refused(tmp_path: Path) -> None:
    options = options_of(TableKind.DELTA, tmp_path)
    keyless = pa.table({"Id": pa.array([None], pa.int64()), "__deleted": [False]})
    with pytest.raises(InvalidValueError, match="micro-batch 3: 1 changes have no 'Id'"):
        merge_once(options, keyless, ["Id"], "q", 3)
    with pytest.raises(InvalidValueError, match="needs the columns that identify a row"):
        merged(options.path, [])


def test_a_removal_that_is_null_is_none(tmp_path: Path) -> None:
    options = options_of(TableKind.DELTA, tmp_path)
    rows = rows_of({1: 10, 2: 20})
    unknown = rows.set_column(2, "__deleted", pa.array([None, False], pa.bool_()))
    for number in range(2):
        merge_once(options, unknown, ["Id"], "q", number)
        assert rows_in(Path(options.path)) == {1: 10, 2: 20}


def test_a_checkpoint_that_was_set_back_is_refused_and_a_new_one_is_not(tmp_path: Path) -> None:
    options = options_of(TableKind.DELTA, tmp_path)

    def ends(batch: int, place: str) -> str:
        (tmp_path / "c" / "offsets").mkdir(parents=True, exist_ok=True)
        log = ["v1", "{}", json.dumps({"v": 1, "p": {"a": place}})]
        (tmp_path / "c" / "offsets" / str(batch)).write_text("\n".join(log))
        return str(tmp_path / "c")

    for number in range(3):
        merge_once(options, rows_of({number: 1}), ["Id"], "q", number, ends(number, f"1:{number}:0"))
    assert merge_once(options, rows_of({2: 9}), ["Id"], "q", 2, ends(2, "1:2:0")) is None
    with pytest.raises(InvalidValueError, match="up to 2, and this is 1: its checkpoint was set back"):
        merge_once(options, rows_of({1: 9}), ["Id"], "q", 1)
    with pytest.raises(InvalidValueError, match=r"has micro-batch 2 .* ends elsewhere .* set back"):
        merge_once(options, rows_of({2: 9}), ["Id"], "q", 2, ends(2, "1:5:0"))
    assert rows_in(Path(options.path)) == {0: 1, 1: 1, 2: 1}
    # What a new checkpoint gives is another query: it merges from its number 0 on.
    assert merge_once(options, rows_of({0: 7}), ["Id"], "new", 0) is not None
    assert rows_in(Path(options.path)) == {0: 7, 1: 1, 2: 1}
