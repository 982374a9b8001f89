"""Why a library cannot read a table, in one line that a person can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.model.library_reason import reason_of
from magnetar.lakehouse.model.options import TableKind
from tests.unit.lakehouse.writing import batch_of, change_of, options_of


def test_a_gap_in_the_log_of_a_delta_table_is_said_without_the_objects_of_its_library(tmp_path: Path) -> None:
    options = options_of(TableKind.DELTA, tmp_path)
    for number in range(3):
        open_table(options).commit(change_of(options, batch_of([number]), number))
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(Exception, match="found gap") as caught:
        open_table(options).exists()
    said = reason_of(caught.value)
    assert "Expected contiguous commit files, but found gap" in said
    assert "{" not in said and len(said) < 200


def test_a_reason_is_the_first_line_and_short() -> None:
    assert reason_of(ValueError("first\nsecond")) == "ValueError: first"
    assert len(reason_of(ValueError("x" * 1000))) < 350
