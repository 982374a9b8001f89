"""Snippets with Spark, as they stand: those of a file one after the other, as a reader would try them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]  # publishes no types
import pytest
from pulsar.schema import AvroSchema, Integer, Record, String  # type: ignore[import-untyped]  # the same
from typer.testing import CliRunner

from magnetar.app import main
from tests.support.live_broker import LiveBroker
from tests.support.snippets import Snippet, commands, python, snippets

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PYTHON = python(spark=True)


class Departure(Record):  # type: ignore[misc]  # publishes no types
    origin = String()
    delay = Integer()


@pytest.fixture(scope="module")
def topics(broker: LiveBroker) -> Iterator[Any]:
    """What the snippets read: an official client that has published, and can publish more."""
    client = pulsar.Client(broker.url)
    departures = client.create_producer("departures", schema=AvroSchema(Departure))
    departures.send(Departure(origin="JFK", delay=3))
    customers = client.create_producer("customers")
    customers.send(b'{"name": "Ada"}', partition_key="1")
    yield client
    client.close()


def publish(client: Any) -> None:
    producer = client.create_producer("flights")
    for number in range(10):
        producer.send(b"flight %d" % number)
    producer.close()


@pytest.fixture(autouse=True)
def nothing_left(spark: Any) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


@pytest.mark.parametrize("file", sorted({one.file for one in PYTHON}))
def test_the_snippets_of_a_file_run_in_order(
    file: str, spark: Any, broker: LiveBroker, topics: Any, tmp_path: Path
) -> None:
    known: dict[str, Any] = {"spark": spark}
    read = 0
    for one in (one for one in PYTHON if one.file == file):
        publish(topics)
        exec(compile(one.at(broker.url, tmp_path), one.where, "exec"), known)
        for query in spark.streams.active:
            # Two micro-batches, so that there are versions to speak of.
            query.processAllAvailable()
            publish(topics)
            query.processAllAvailable()
        read += _look(known, one)
    assert read or file == "docs/spark-reading.md"
    for one in (one for one in snippets() if one.file == file and "magnetar lake" in one.text):
        for words in commands(one._replace(text=one.at(broker.url, tmp_path))):
            done = CliRunner().invoke(main.app, words[1:])
            assert "magnetar:" not in done.output, done.output
            assert done.exit_code in (0, int("holding" in words))


def _look(known: dict[str, Any], one: Snippet) -> int:
    """Frames that the snippet has made are what they should be."""
    found = 0
    for name, value in known.items():
        if name in ("orders", "flights", "changes"):
            assert value.isStreaming and "value" in value.columns
            found += 1
        if name in ("rows", "good", "added") and hasattr(value, "isStreaming") and not value.isStreaming:
            assert value.count() >= 1
            found += 1
    return found
