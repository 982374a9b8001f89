"""Options of the sinks: defaults, errors that say what to write instead, and their documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from magnetar.lakehouse.model.options import OPTIONS, TableKind, lake_options
from magnetar.lakehouse.model.partition import PartitionColumn
from magnetar.model.errors import InvalidValueError

ROOT = Path(__file__).parents[3]


def test_defaults_and_prefixes() -> None:
    options = lake_options(
        TableKind.DELTA,
        {
            "path": "s3://b/t/",
            "storage.aws_region": "eu",
            "catalog.uri": "u",
            "partitioncolumns": "a",
            "txnappid": "x",
            "txnversion": "3",
            "checkpointlocation": "/c",
            "schemaevolution": "ADD",
        },
    )
    assert (options.path, options.storage, options.catalog) == ("s3://b/t", {"aws_region": "eu"}, {"uri": "u"})
    assert (options.partitioning, options.transaction, options.checkpoint) == ((PartitionColumn("a"),), ("x", 3), "/c")
    assert options.add_columns
    assert not lake_options(TableKind.DELTA, {"path": "t"}).add_columns


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "option 'path' is missing"),
        ({"path": "t", "partitioncolums": "a"}, "did you mean 'partitionColumns'"),
        ({"path": "t", "partitionby": "a"}, "write 'partitionColumns'"),
        ({"path": "t", "qwertz": "a"}, "known are commitRetries"),
        ({"path": "t", "schemaevolution": "merge"}, "it can be none, add"),
        ({"path": "t", "txnappid": "x"}, "belong together"),
        ({"path": "t", "targetfilebytes": "1"}, "a number from 1024 on"),
        ({"path": "t", "table": "name"}, "write namespace.name"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        lake_options(TableKind.PARQUET, given)


def test_every_option_is_documented_as_it_is() -> None:
    text = (ROOT / "docs" / "lakehouse.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert rows == {option.title: option.help for option in OPTIONS.values()}
