"""The topics of a stream as its driver knows them; how it talks to a broker is tested with one."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.bulk.lag import Lag
from magnetar.client.errors import ClientTimeoutError
from magnetar.client.read_position import ReadPosition
from magnetar.spark.options.offsets import parse_offset
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning import offset_resolution, topic_tracker

TOPIC = "persistent://public/default/t"


def test_a_query_goes_on_when_its_lag_cannot_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    options = source_options({"service.url": "pulsar://127.0.0.1:1", "topic": "t"})
    found = topic_tracker.TopicTracker(options, "s")
    monkeypatch.setattr(found, "latest", lambda: {TOPIC: ReadPosition(1, 9)})
    monkeypatch.setattr(topic_tracker, "lag", lambda *_: Lag(5, 7))
    assert found.lags({TOPIC: ReadPosition(1, 4)}) == {TOPIC: Lag(5, 7)}

    def fails(*_: Any) -> Lag:
        raise ClientTimeoutError("slow")

    monkeypatch.setattr(topic_tracker, "lag", fails)
    monkeypatch.setattr(found, "_lags_asked", float("-inf"))
    assert found.lags({TOPIC: ReadPosition(1, 4)}) == {}


class Topic:
    """Ten messages, one per entry, in ledger 5; the ninth and tenth cannot be read yet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(offset_resolution, "last_position", lambda *_: ReadPosition(5, 8))
        monkeypatch.setattr(offset_resolution, "written_position", lambda *_: ReadPosition(5, 10))
        monkeypatch.setattr(
            offset_resolution, "position_of_index", lambda _, __, number: ReadPosition(5, min(number, 8))
        )
        self.lookup: Any = None


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("5:3", None),
        ("5:8", None),
        ("5:10", None),
        ("5:11", "startingOffsets says 5:11:0, and the topic ends at 5:10:0"),
        ("6:0", "startingOffsets says 6:0:0, and the topic ends at 5:10:0"),
        ("0", None),
        ("7", None),
        ("8", None),
        ("9", "startingOffsets says the index 9, and the topic has fewer messages: it ends at 5:8:0"),
        ("earliest", None),
        ("latest", None),
    ],
)
def test_a_start_after_everything_is_a_loss(at: str, error: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic(monkeypatch)
    if error is None:
        assert offset_resolution.resolve_start(topic.lookup, TOPIC, parse_offset(at), strict=True) <= ReadPosition(
            5, 10
        )
    else:
        with pytest.raises(DataLossError, match=error):
            offset_resolution.resolve_start(topic.lookup, TOPIC, parse_offset(at), strict=True)
    assert offset_resolution.resolve_start(topic.lookup, TOPIC, parse_offset(at), strict=False)


@pytest.mark.parametrize("strict", [True, False])
def test_a_checkpoint_after_everything_is_a_loss(strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic was deleted and made anew: its numbers begin again, and the query would wait for ever."""
    Topic(monkeypatch)
    given = {"service.url": "pulsar://127.0.0.1:1", "topic": "t", "failOnDataLoss": str(strict).lower()}
    found = topic_tracker.TopicTracker(source_options(given), "s")
    monkeypatch.setattr(found, "_last", {TOPIC: ReadPosition(5, 8)})
    monkeypatch.setattr(found, "_subscriptions", {TOPIC: None})
    for position in (ReadPosition(5, 8), ReadPosition(5, 9)):
        found.check_there({TOPIC: position})
    if strict:
        with pytest.raises(DataLossError, match="was read up to 7:2:0, and ends at 5:10:0"):
            found.check_there({TOPIC: ReadPosition(7, 2)})
    else:
        found.check_there({TOPIC: ReadPosition(7, 2)})
