"""What is a query, which columns and tables it names, and how much it may read."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.io.plugins import register_io_source

from magnetar.cli.sql.command import _with_flags
from magnetar.cli.sql.read_bounds import QueryBoundError, ReadBounds
from magnetar.cli.sql.statement import (
    OPERATORS_MAX,
    STATEMENT_MAX,
    check_plan,
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


@pytest.mark.parametrize("operator", ["+", "||", " or ", " AND ", "::int +", " UNION ALL SELECT ", "*-"])
def test_a_chain_that_the_engine_could_not_go_through_is_refused(operator: str) -> None:
    """It ended the process without a word, for its stack was too small."""
    with pytest.raises(InvalidValueError, match=r"operators .* 250 are the most"):
        check_statement("SELECT " + operator.join(["'a'"] * (OPERATORS_MAX + 2)))


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a FROM t WHERE a IN ({', '.join(['-1'] * 5000)})",
        f"SELECT a FROM t WHERE day IN ({', '.join(['2026-01-31'.join(chr(39) * 2)] * 2000)})",
        f"SELECT {', '.join(f'a{number}' for number in range(5000))} FROM " + '"my-own-topic"',
        f"SELECT a /* {'+ - or ' * 1000} */ FROM t -- {'1+1 ' * 1000}",
    ],
)
def test_what_is_long_and_no_chain_is_run(text: str) -> None:
    check_statement(text)


def test_errors_about_places_name_the_flags() -> None:
    assert (
        _with_flags("t: startingOffsets says 9:9:0, and the topic ends") == "t: --from says 9:9:0, and the topic ends"
    )


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM a", "drop table a", "-- SELECT\nTRUNCATE a", "(INSERT", "CREATE TABLE a AS SELECT 1", "SELECTED"],
)
def test_all_else_is_refused_by_name(text: str) -> None:
    word = next(one for one in ("DELETE", "DROP", "TRUNCATE", "INSERT", "CREATE", "SELECTED") if one in text.upper())
    with pytest.raises(InvalidValueError, match=rf"^{word} is refused: .*SELECT"):
        check_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{0}')",
        "SELECT * FROM READ_CSV ('{0}')",
        "SELECT * FROM \"read_csv\"('{0}')",
        "SELECT * FROM `read_csv`\n('{0}')",
        "SELECT * FROM read_csv/* /* */ */('{0}')",
        "SELECT * FROM read_csv -- (\n ('{0}')",
        "WITH a AS (SELECT * FROM read_csv('{0}')) SELECT * FROM a",
        "SELECT * FROM orders JOIN read_parquet('https://example.org/x') p ON true",
        "SELECT * FROM read_json('{0}')",
        "SELECT * FROM read_ipc('{0}')",
        "SELECT * FROM Scan_Delta('{0}')",
        "SELECT * FROM read_later /* it may come */ ('{0}')",
    ],
)
def test_no_statement_opens_a_file(text: str, tmp_path: Path) -> None:
    """Whoever wrote the statement: what the user may read is not the statement's."""
    file = tmp_path / "secret.csv"
    file.write_text("password\nhunter2\n")
    with pytest.raises(InvalidValueError, match=r"(read|scan)_\w+ is refused: a statement reads topics only, no files"):
        check_statement(text.format(file))


def test_every_way_of_the_engine_to_a_file_is_refused(tmp_path: Path) -> None:
    """What the words do not show, the plan does; and words that do nothing are let through."""
    file = tmp_path / "secret.csv"
    file.write_text("password\nhunter2\n")
    plan = pl.SQLContext().execute(f"SELECT password FROM read_csv('{file}')").explain(optimized=False)
    with pytest.raises(InvalidValueError, match="SCAN is refused"):
        check_plan(plan)
    check_plan(register_io_source(lambda *_: iter(()), schema={"a": pl.Int64}).explain(optimized=False))
    check_plan(pl.LazyFrame({"a": ["x"]}).filter(pl.col("a") == "Csv SCAN [/x]").explain(optimized=False))
    for text in ("SELECT read_at, scan_count FROM reads", "SELECT * FROM threads WHERE note LIKE '%I read (it)%'"):
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
    held = ReadBounds(max_rows=0, max_bytes=0, timeout=0, max_memory=16 << 20)
    held.check_memory()
    filler = bytearray(b"x") * (64 << 20)
    with pytest.raises(QueryBoundError, match=r"holds \d+\.\d MiB of memory; .* raise --max-memory"):
        held.check_memory()
    del filler
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(InvalidValueError, match="--timeout is"):
            ReadBounds(max_rows=0, max_bytes=0, timeout=wrong)
