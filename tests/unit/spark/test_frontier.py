"""What a stream's driver knows; how it talks to a broker is tested with one."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.client.errors import ClientTimeoutError
from magnetar.client.lag import Lag
from magnetar.client.place import Place
from magnetar.spark import frontier
from magnetar.spark.options import source_options

TOPIC = "persistent://public/default/t"


def test_a_query_does_not_end_because_nobody_knows_how_far_behind_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    options = source_options({"service.url": "pulsar://127.0.0.1:1", "topic": "t"})
    found = frontier.Frontier(options, "s")
    monkeypatch.setattr(found, "latest", lambda: {TOPIC: Place(1, 9)})
    monkeypatch.setattr(frontier, "lag", lambda *_: Lag(5, 7))
    assert found.lags({TOPIC: Place(1, 4)}) == {TOPIC: Lag(5, 7)}

    def fails(*_: Any) -> Lag:
        raise ClientTimeoutError("slow")

    monkeypatch.setattr(frontier, "lag", fails)
    monkeypatch.setattr(found, "_lags_asked", float("-inf"))
    assert found.lags({TOPIC: Place(1, 4)}) == {}
