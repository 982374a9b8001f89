"""A broker as a child process and the official client, for the tests whose name says so.

With ``MAGNETAR_WIRE_BROKER=apache`` the broker is Apache Pulsar (`make wire`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from tools.servers import apache, magnetar
from tools.servers.process import Server

from tests.support.live_broker import ON_APACHE
from tests.wire.on_apache import SKIPPED

SETTINGS = {"acknowledgmentAtBatchIndexLevelEnabled": "true", "maxMessageSize": "1024000"}
"""The settings that the official client's own test suite uses."""

PATIENCE_MS = 10_000
SILENCE_MS = 300


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("official")
    with apache.start(place, settings=SETTINGS) if ON_APACHE else magnetar.start(place, settings=SETTINGS) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out, on Apache Pulsar, what cannot be asked of it."""
    for item in items if ON_APACHE else ():
        for name, why in SKIPPED.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def client(server: Server) -> Iterator[Any]:
    opened = connected(server)
    yield opened
    opened.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that only this test uses."""
    return re.sub(r"[^a-z0-9]+", "-", f"{Path(request.node.path).stem}-{request.node.name}".lower())


def connected(server: Server) -> Any:
    return pulsar.Client(server.broker_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def received(consumer: Any, count: int) -> list[Any]:
    return [consumer.receive(PATIENCE_MS) for _ in range(count)]


def texts(messages: list[Any]) -> list[str]:
    return [message.data().decode() for message in messages]


def nothing_more(consumer: Any) -> None:
    with pytest.raises(pulsar.Timeout):
        consumer.receive(SILENCE_MS)


def publish(producer: Any, count: int, **options: Any) -> list[Any]:
    """Publish ``count`` messages, "0" and so on; returns their ids."""
    return [producer.send(str(number).encode(), **options) for number in range(count)]
