"""Column lists and intervals are accepted as Spark does, and what is wrong with them is named."""

from __future__ import annotations

import pytest

from magnetar.pipelines.declaration.ddl import DdlError, columns_of, problem_of_interval


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a STRING, b BIGINT", {"a": "string", "b": "bigint"}),
        ("a: int, `b c` decimal(10, 2) NOT NULL COMMENT 'isn''t', d ARRAY<STRUCT<x: INT, y: MAP<STRING, INT>>>",
         {"a": "int", "b c": "decimal", "d": "array"}),
        ("i INTERVAL DAY TO SECOND, s STRING COLLATE UTF8_LCASE, v VARCHAR(3), t TIMESTAMP_NTZ, e STRUCT<>",
         {"i": "interval", "s": "string", "v": "varchar", "t": "timestamp_ntz", "e": "struct"}),
        ("名前 STRING", {"名前": "string"}),
    ],
)  # fmt: skip
def test_columns_that_spark_takes_are_valid(text: str, kinds: dict[str, str]) -> None:
    assert dict(columns_of(text)) == kinds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a BIGNT", "'BIGNT' is no type for the column 'a'; did you mean 'bigint'?"),
        ("a ARRAY<STRNG>", "did you mean 'string'?"),
        ("a STRING b INT", "a comma separates columns"),
        ("a STRING,, b INT", "there is ',' where the name"),
        ("a STRING,", "ends with a comma"),
        ("", "no column"),
        ("a", "has no type"),
        ("a, b INT", "the column 'a' has no type"),
        ("a STRING, A INT", "twice"),
        ("a STRING, a STRING", "twice"),
        ("a ARRAY<INT", "lacks a '>'"),
        ("a ARRAY", "ARRAY of what?"),
        ("a MAP<STRING>", "MAP<key, value>"),
        ("a STRUCT<x: INT", "it ends within the columns"),
        ("a DECIMAL(ten)", "where a number should be"),
        ("a INT NOT", "without NULL"),
        ("a " + "ARRAY<" * 80 + "INT", "nested too deeply"),
        ("x STRING, y INT, x INT", "the column 'x' stands twice"),
        ("s STRUCT<a: INT, `a`: STRING>", "the column 'a' stands twice"),
    ],
)
def test_columns_that_spark_refuses_are_named(text: str, problem: str) -> None:
    with pytest.raises(DdlError) as caught:
        columns_of(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text", ["1 hour", "10 seconds", "INTERVAL 1 day 2 hours", "1.5 minutes", "0 seconds", "2 WEEKS"]
)
def test_valid_intervals(text: str) -> None:
    assert problem_of_interval(text) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 fortnight", "'fortnight' in '1 fortnight' is no unit of time; known are day, hour"),
        ("1 hou", "did you mean 'hour'?"),
        ("-1 hour", "no number from 0 on"),
        ("hour", "is no time"),
        ("1", "is no time"),
        ("1 hour 2", "is no time"),
        ("one hour", "no number"),
    ],
)
def test_invalid_intervals_are_named(text: str, problem: str) -> None:
    assert problem in (problem_of_interval(text) or "")
