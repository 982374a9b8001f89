"""One Spark session and one broker for all tests here: starting them costs seconds."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from magnetar.spark.session import end_session, local_session
from tests.spark.numbered_topic import Make
from tests.support.live_broker import LiveBroker, live_broker

PARTITIONS = 2
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """Topics get two partitions when they are first used, and stay: a slow test takes more than a minute."""
    with live_broker(
        tmp_path_factory.mktemp("broker"),
        allowAutoTopicCreationType="partitioned",
        defaultNumPartitions=PARTITIONS,
        brokerDeduplicationEnabled="true",
        brokerDeleteInactiveTopicsEnabled="false",
    ) as started:
        yield started


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Two cores, little memory, `register` done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = local_session("tests", brief=True, memory="768m")
    yield session
    end_session(session)


@pytest.fixture
def topic() -> str:
    return f"persistent://public/default/spark-{next(NUMBERS)}"


@pytest.fixture
def fill(spark: Any, broker: LiveBroker, topic: str) -> Make:
    """Publish numbers as values and keys, through the batch sink."""

    def fill(first: int, last: int, **options: str) -> None:
        frame = spark.range(first, last).selectExpr(
            "CAST(id AS STRING) AS value", "CONCAT('k', id % 7) AS __key", "TIMESTAMP_SECONDS(id + 1) AS __eventTime"
        )
        writer = frame.write.format("pulsar").option("service.url", broker.url).option("topic", topic)
        writer.options(**options).mode("append").save()

    return fill


@pytest.fixture
def load(spark: Any, broker: LiveBroker, topic: str) -> Make:
    def load(**options: str) -> Any:
        reader = spark.read.format("pulsar").option("service.url", broker.url).option("topic", topic)
        return reader.options(**{"value": "string", **options}).load()

    return load


@pytest.fixture
def stream(spark: Any, broker: LiveBroker, topic: str) -> Make:
    def stream(**options: str) -> Any:
        reader = spark.readStream.format("pulsar").option("service.url", broker.url).option("topic", topic)
        return reader.options(**{"value": "string", "subscription": "spark", "metadata": "none", **options}).load()

    return stream
