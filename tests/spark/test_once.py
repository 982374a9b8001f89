"""Effectively once, the short version of `rounds`: attempts that fail, a broker and a driver that are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magnetar.spark.data_source import PulsarSource
from tests.spark.pipeline import AFTER, SHARE, source_class
from tests.spark.rounds import Experiment, keep
from tests.support.live_broker import LiveBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = 900


@pytest.mark.parametrize("variant", ["ours", "random-names", "unguarded"])
def test_failing_attempts(spark: Any, broker: LiveBroker, tmp_path: Path, variant: str) -> None:
    """All attempts of the query fail, until the last one. The wrong variants show what would be lost or repeated."""
    topic = f"persistent://public/default/once-{variant}"
    pulsar = {"service.url": broker.url, "topic": topic}
    numbers = spark.range(ROWS).selectExpr("CAST(id AS STRING) AS value", "CONCAT('k', id % 7) AS __key")
    numbers.write.format("pulsar").options(**pulsar).mode("append").save()
    # A slow machine must not find that the broker has deleted an idle topic.
    keep(broker.url, f"{topic}-copy")
    spark.dataSource.register(source_class(variant))
    context = spark.sparkContext
    shares = ("1.0", AFTER, "0.0") if variant == "ours" else (AFTER, "0.0")
    try:
        for share in shares:
            context.setLocalProperty(SHARE, share)
            # With adaptive execution a shuffle ends in one task, without it in two.
            spark.conf.set("spark.sql.adaptive.enabled", str(share == "0.0").lower())
            stream = spark.readStream.format("pulsar").options(**pulsar, subscription="once", metadata="__key")
            rows = stream.option("startingOffsets", "earliest").load()
            target = {**pulsar, "topic": f"{topic}-copy", "pulsar.producer.batchingMaxMessages": "50"}
            if variant == "unguarded":
                rows, target = rows.repartition("__key"), {**target, "repeatable": "true"}
            query = (
                rows.writeStream.format("pulsar")
                .options(**target, checkpointLocation=str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            if share == "0.0":
                query.awaitTermination(60)
            else:
                with pytest.raises(Exception, match="OnPurposeError"):
                    query.awaitTermination(60)
    finally:
        context.setLocalProperty(SHARE, None)
        spark.conf.set("spark.sql.adaptive.enabled", "false")
        spark.dataSource.register(PulsarSource)
    copy = spark.read.format("pulsar").options(**{**pulsar, "topic": f"{topic}-copy"}, value="string").load()
    found = sorted(int(row.value) for row in copy.collect())
    assert (found == list(range(ROWS))) == (variant == "ours")


@pytest.mark.drivers
def test_driver_and_broker_are_killed(tmp_path: Path) -> None:
    outcome = Experiment(tmp_path, "ours", 1, lambda _: None).run(driver_kills=1, broker_kills=1, seconds=0.0)
    assert outcome.found == outcome.expected > 0
    assert (outcome.lost, outcome.repeated, outcome.disordered) == (0, 0, 0)
