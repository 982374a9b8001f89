"""What is a query, which columns and tables it names, and how much it may read."""

from __future__ import annotations

import pytest

from magnetar.cli.sql.read_bounds import QueryBoundError, ReadBounds
from magnetar.cli.sql.statement import (
    STATEMENT_MAX,
    check_statement,
    hint,
    metadata_columns,
    topic_of,
    unknown_table,
)
from magnetar.model.errors import InvalidValueError


@pytest.mark.parametrize(
    "text",
    ["SELECT 1", " select 1", "-- why\nSELECT 1", "/* a\nb */ ( SELECT 1)", "WITH a AS (SELECT 1) SELECT * FROM a"],
)
def test_queries_are_run(text: str) -> None:
    check_statement(text)


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM a", "drop table a", "-- SELECT\nTRUNCATE a", "(INSERT", "CREATE TABLE a AS SELECT 1", "SELECTED"],
)
def test_all_else_is_refused_by_name(text: str) -> None:
    word = next(one for one in ("DELETE", "DROP", "TRUNCATE", "INSERT", "CREATE", "SELECTED") if one in text.upper())
    with pytest.raises(InvalidValueError, match=rf"^{word} is refused: .*SELECT"):
        check_statement(text)


@pytest.mark.parametrize("text", ["", "  ", "-- SELECT", "12", "/*"])
def test_no_statement(text: str) -> None:
    with pytest.raises(InvalidValueError, match="there is no statement"):
        check_statement(text)


def test_a_huge_statement() -> None:
    check_statement("SELECT 1" + " " * (STATEMENT_MAX - 8))
    with pytest.raises(InvalidValueError, match="are the most"):
        check_statement("SELECT 1" + " " * STATEMENT_MAX)


def test_columns_that_can_be_used() -> None:
    known = ("__key", "__topic", "__publishTime", "__ledgerId", "__entryId")
    assert metadata_columns("SELECT * FROM a", known) == ("__key", "__publishTime")
    assert metadata_columns("SELECT a.__entryId, __ledgerIds", known) == ("__key", "__publishTime", "__entryId")


def test_tables() -> None:
    assert unknown_table("relation 'a/b c' was not found") == "a/b c"
    assert unknown_table("unable to find column") is None
    assert topic_of("orders") == "persistent://public/default/orders"
    assert topic_of("a/b/c") == topic_of("persistent://a/b/c") == "persistent://a/b/c"
    with pytest.raises(InvalidValueError, match="table 'a/b' is no topic"):
        topic_of("a/b")
    assert "double quotes" in hint("sql parser error: Expected") and not hint("else")


def test_bounds() -> None:
    bounds = ReadBounds(max_rows=10, max_bytes=100, timeout=0)
    bounds.take(10, 100)
    assert bounds.progress() == "10 rows, 100 B"
    with pytest.raises(QueryBoundError, match=r"more than 10 rows .* raise --max-rows"):
        bounds.take(1, 0)
    with pytest.raises(QueryBoundError, match="raise --max-bytes"):
        ReadBounds(max_rows=0, max_bytes=100, timeout=0).take(1 << 40, 101)
    with pytest.raises(QueryBoundError, match="raise --timeout"):
        ReadBounds(max_rows=0, max_bytes=0, timeout=1e-9).check_time()
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(InvalidValueError, match="--timeout is"):
            ReadBounds(max_rows=0, max_bytes=0, timeout=wrong)
