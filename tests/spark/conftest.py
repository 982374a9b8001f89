"""One Spark session and one broker for all tests here: starting them costs seconds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from magnetar.spark.session import end_session, local_session
from tests.support.live_broker import LiveBroker, live_broker

PARTITIONS = 2


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    """Topics get two partitions when they are first used."""
    with live_broker(
        tmp_path_factory.mktemp("broker"),
        allowAutoTopicCreationType="partitioned",
        defaultNumPartitions=PARTITIONS,
        brokerDeduplicationEnabled="true",
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
