"""Where `staged` keeps micro-batches; that it works is tested with Spark."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from magnetar.spark import staging


def test_a_new_checkpoint_sends_nothing_that_an_earlier_one_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()
    monkeypatch.setattr(staging, "_exists", lambda _, path: path in there)
    monkeypatch.setattr(staging, "_remove", lambda _, path: there.discard(f"{path}/_SUCCESS"))
    send = staging.staged("/stage/", {"service.url": "pulsar://127.0.0.1:1", "topic": "t"})

    def written(query: str, batch: int) -> list[Any]:
        result = MagicMock()
        result.sparkSession.sparkContext.getLocalProperty.return_value = query
        parquet = result.write.mode.return_value.parquet
        parquet.side_effect = lambda path: there.add(f"{path}/_SUCCESS")
        send(result, batch)
        return [one.args[0] for one in parquet.call_args_list]

    assert written("q1", 0) == ["/stage/q1/0"]
    assert written("q1", 0) == []
    assert written("q2", 0) == ["/stage/q2/0"]
    assert written("q1", 1) == ["/stage/q1/1"]
    assert there == {"/stage/q1/1/_SUCCESS", "/stage/q2/0/_SUCCESS"}
