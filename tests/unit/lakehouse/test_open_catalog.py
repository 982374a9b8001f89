"""A table that nobody uses any more leaves no connection to its catalog open."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.model.options import TableKind
from tests.unit.lakehouse.writing import batch_of, change_of, options_of


def test_the_catalog_is_closed_when_its_table_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 warns of each connection to sqlite that is still open when it is collected."""
    gc.collect()  # tables of other tests
    closed: list[str] = []
    close = SqlCatalog.close

    def noted(catalog: SqlCatalog) -> None:
        closed.append(catalog.name)
        close(catalog)

    monkeypatch.setattr(SqlCatalog, "close", noted)
    options = options_of(TableKind.ICEBERG, tmp_path)
    table = open_table(options)
    table.commit(change_of(options, batch_of([1, 2]), 0))
    gc.collect()
    assert not closed
    del table
    gc.collect()  # errors that pyiceberg has handled keep frames
    assert closed == ["magnetar"]
