"""The epoch in the properties of a log: what users of older versions wrote there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from magnetar.broker.topic.publish.topic_epoch import EPOCH_MAX, EPOCH_PROPERTY, LogEpoch


class Log:
    def __init__(self, properties: dict[str, Any]) -> None:
        self.properties = properties

    def write_birth(self, done: Callable[[], None]) -> None:
        done()


def kept(value: Any) -> LogEpoch:
    return LogEpoch(cast(Any, Log({"color": "red", EPOCH_PROPERTY: value})))


@pytest.mark.parametrize(("value", "epoch"), [("0", 0), ("7", 7), (str(EPOCH_MAX), EPOCH_MAX)])
def test_what_an_exclusive_producer_left(value: str, epoch: int) -> None:
    assert kept(value).current == epoch


@pytest.mark.parametrize(
    "value", ["x", "", " 7", "-1", "1.5", "1_0", "٣", str(EPOCH_MAX + 1), "9" * 19, "9" * 5000, None, True, [1]]
)
def test_what_is_no_epoch_means_none_and_is_replaced(value: Any) -> None:
    epoch = kept(value)
    moved: list[int | None] = [epoch.current]
    epoch.move(0, lambda: moved.append(epoch.current))
    assert moved == [None, 0]
