"""What the garbage collector is spared."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from magnetar.app.collecting import Collecting


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    calls: list[str] = []
    for name in ("disable", "enable", "freeze", "unfreeze", "collect", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_, name=name: calls.append(name))
    yield calls


def test_recovery_runs_without_and_topics_are_frozen_as_they_come(done: list[str]) -> None:
    collecting = Collecting()
    assert done == ["disable"]
    collecting.recovered()
    collecting.complete()
    assert done[1:] == ["freeze", "enable", "set_threshold", "collect", "freeze"]
    del done[:]
    for topics, expected in (
        (999, []), (1000, ["freeze"]), (1999, []), (30_000, ["freeze"]), (20_001, []), (20_000, ["unfreeze"]),
        (20_999, []), (21_000, ["freeze"]), (12_000, []), (11_000, ["unfreeze"]), (0, ["unfreeze"]), (500, []),
    ):  # fmt: skip
        asyncio.run(collecting.look(lambda topics=topics: topics))  # type: ignore[misc]  # mypy cannot infer it
        assert done == expected, topics
        del done[:]


def test_what_a_few_topics_leave_is_collected_soon(done: list[str]) -> None:
    """A thousand topics that somebody made and deleted must not stay in memory until ten thousand have gone."""
    collecting = Collecting()
    del done[:]
    everything = ["unfreeze", "collect", "freeze"]
    for topics, expected in (
        (300, []), (101, []), (100, everything), (0, []), (1500, ["freeze"]), (1301, []), (1300, everything),
        (5000, ["freeze"]), (4000, everything), (5001, ["freeze"]), (2000, []), (0, []),
    ):  # fmt: skip
        asyncio.run(collecting.look(lambda topics=topics: topics))  # type: ignore[misc]  # mypy cannot infer it
        assert done == expected, topics
        del done[:]
