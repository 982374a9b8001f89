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


def test_recovery_runs_without_and_topics_are_frozen_as_they_come(done: list[str]) -> None:
    collecting = GarbageCollection()
    assert done == ["disable"]
    collecting.recovered()
    collecting.complete()
    assert done[1:] == ["freeze", "enable", "set_threshold", "collect", "freeze"]
    del done[:]
    frozen = ["collect", "freeze"]
    for topics, expected in (
        (999, []), (1000, frozen), (1999, []), (30_000, frozen), (20_001, []), (20_000, ["unfreeze"]),
        (20_999, []), (21_000, frozen), (12_000, []), (11_000, ["unfreeze"]), (1_001, []), (1_000, ["unfreeze"]),
        (500, []), (1_500, []), (2_000, frozen), (0, []),
    ):  # fmt: skip
        asyncio.run(collecting.look(lambda topics=topics: topics))  # type: ignore[misc]  # mypy cannot infer it
        assert done == expected, topics
        del done[:]
