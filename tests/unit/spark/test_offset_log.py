"""Spark's files in a checkpoint: the query's id, and the end offsets of a micro-batch."""

from __future__ import annotations

import json

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError
from magnetar.spark.offset_json import from_json, own_offset, to_json
from magnetar.spark.offset_log import parse_offset_log, parse_query_id

TOPIC = "persistent://public/default/t-partition-0"
POSITIONS = {TOPIC: ReadPosition(12, 400, 3)}


def test_the_query_s_id_is_in_metadata() -> None:
    assert parse_query_id('{"id":"c6758721"}', "metadata") == "c6758721"


@pytest.mark.parametrize("text", ["", "{}", "[]", "7"])
def test_metadata_that_is_not_spark_s_is_named(text: str) -> None:
    with pytest.raises(InvalidValueError, match=r"c/metadata is no file of Spark's"):
        parse_query_id(text, "c/metadata")


def test_each_source_has_a_line_and_a_dash_is_no_offset() -> None:
    ours = json.dumps(to_json(POSITIONS))
    log = f'v1\n{{"batchWatermarkMs":0}}\n{ours}\n-\n41\n'
    assert parse_offset_log(log, "offsets/0") == [ours, None, "41"]
    assert from_json(own_offset(ours) or {}) == POSITIONS


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0b", "\x1c", "\r"])
def test_a_line_ends_where_spark_ends_it(odd: str) -> None:
    """Spark writes other sources' offsets, and settings, with such characters in them."""
    assert parse_offset_log(f'v1\n{{"conf":"{odd}"}}\n{{"file":"a{odd}b"}}\n-\n', "offsets/0") == [
        f'{{"file":"a{odd}b"}}',
        None,
    ]


@pytest.mark.parametrize("text", ["", "v2\n{}\n-"])
def test_a_log_of_another_version_is_named(text: str) -> None:
    with pytest.raises(InvalidValueError, match=r"offsets/3 has version .*formatVersion at 1"):
        parse_offset_log(text, "offsets/3")


@pytest.mark.parametrize("line", ["41", "no JSON", '{"rate": 5}', '{"v": {"0": 1}, "p": {"0": 2}}', "[]"])
def test_an_offset_of_another_source_is_not_ours(line: str) -> None:
    assert own_offset(line) is None


def test_an_offset_of_a_later_release_is_ours_and_refused() -> None:
    offset = own_offset('{"v": 2, "p": {}}')
    assert offset is not None
    with pytest.raises(InvalidValueError, match="offsets of version 2"):
        from_json(offset)
