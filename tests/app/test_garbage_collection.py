"""What the garbage collector is spared."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from magnetar.app.garbage_collection import GarbageCollection


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    calls: list[str] = []
    for name in ("disable", "enable", "freeze", "unfreeze", "collect", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_, name=name: calls.append(name))
    yield calls


def test_recovery_runs_without_and_what_comes_is_frozen(done: list[str]) -> None:
    in_use = 500_000
    collecting = GarbageCollection()
    assert done == ["disable"]
    collecting.recovered()
    collecting.complete(lambda: in_use)
    assert done[1:] == ["freeze", "enable", "set_threshold", "collect", "freeze"]
    del done[:]
    frozen = ["collect", "freeze"]
    for thousands, expected in (
        (524, []), (525, frozen), (549, []), (3_000, frozen), (2_001, []), (2_000, ["unfreeze"]),
        (2_024, []), (2_025, frozen), (1_200, []), (1_025, ["unfreeze"]), (26, []), (25, ["unfreeze"]),
        (12, []), (49, []), (50, frozen), (0, []),
    ):  # fmt: skip
        in_use = thousands * 1000
        asyncio.run(collecting.look())
        assert done == expected, thousands
        del done[:]
