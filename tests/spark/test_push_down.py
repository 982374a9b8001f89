"""Filters reach the source on real Spark: less is planned and read, and rows are what Spark alone would keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
TOPIC = "persistent://public/default/push-down"
SETTING = "spark.sql.python.filterPushdown.enabled"


def test_filters_are_pushed_where_the_setting_allows(spark: Any, broker: LiveBroker) -> None:
    options = {"service.url": broker.url, "topic": TOPIC}
    frame = spark.range(100).selectExpr("CAST(id AS STRING) AS value", "CONCAT('k', id % 7) AS __key")
    writer = frame.write.format("pulsar").options(**options).option("pulsar.producer.batchingMaxMessages", "10")
    writer.mode("append").save()
    read = spark.read.format("pulsar").options(**options, value="string", metadata="all").load()
    rows = read.collect()
    assert len(rows) == 100
    one = next(row for row in rows if row["__partition"] == 0 and row["__entryId"] == 1)
    # The last of its key: entries of one task may have one publish time, and keys one partition.
    middle = max(row["__publishTime"] for row in rows if row["__key"] == b"k3" and row.value not in ("3", "10"))
    literal = f"TIMESTAMP_MICROS({int(middle.timestamp() * 1_000_000)})"
    conditions: dict[str, Callable[[Any], bool]] = {
        f"__ledgerId = {one['__ledgerId']} AND __entryId >= 1 AND __partition < 1": lambda row: (
            row["__entryId"] >= 1 and row["__partition"] < 1
        ),
        f"__publishTime >= {literal} AND __key = X'6b33' AND value NOT IN ('3', '10')": lambda row: (
            row["__publishTime"] >= middle and row["__key"] == b"k3" and row.value not in ("3", "10")
        ),
    }

    def load() -> Any:
        return (
            spark.read.format("pulsar")
            .options(**options, value="string", metadata="all", pushDownFilters="true")
            .load()
        )

    for text, keeps in conditions.items():
        expected = sorted(row.value for row in rows if keeps(row))
        assert expected and sorted(row.value for row in load().where(text).collect()) == expected, text
    filtered = load().where("__topic LIKE '%-1' AND __eventTime IS NULL")
    assert filtered.rdd.getNumPartitions() == 1
    assert "Filter (" not in filtered._jdf.queryExecution().executedPlan().toString()
    # Without the option nothing is pushed, and a DataFrame may be used again.
    assert read.where("__partition = 1").count() == sum(row["__partition"] for row in rows)
    spark.conf.set(SETTING, "false")
    try:
        with pytest.raises(Exception, match=SETTING):
            load().where("__partition = 1").count()
    finally:
        spark.conf.set(SETTING, "true")
