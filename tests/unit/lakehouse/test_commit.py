"""The driver refuses micro-batches that are not repetitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.lakehouse.commit import check_not_set_back, commit
from magnetar.lakehouse.formats.table import TableChange
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import InvalidValueError
from tests.unit.lakehouse.writing import batch_of, change_of, options_of


@pytest.mark.parametrize("kind", list(TableKind), ids=lambda kind: kind.value)
def test_a_checkpoint_that_was_set_back_is_no_repetition(kind: TableKind, tmp_path: Path) -> None:
    options = options_of(kind, tmp_path)

    def attempt(number: int) -> TableChange:
        return change_of(options, batch_of([number]), number)

    for number in (3, 4):
        assert commit(options, attempt(number)) is not None
    again = attempt(4)
    assert commit(options, again) is None
    check_not_set_back(options, again)
    old = attempt(3)
    assert commit(options, old) is None
    with pytest.raises(InvalidValueError, match="up to 4, and this is 3: its checkpoint was set back"):
        check_not_set_back(options, old)
    check_not_set_back(options, old._replace(files=[]))
