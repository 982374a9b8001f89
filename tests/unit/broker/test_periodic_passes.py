"""A pass over all topics does nothing for one that has closed meanwhile."""

from __future__ import annotations

import asyncio
import warnings
from types import SimpleNamespace
from typing import Any, cast

from magnetar.broker.upkeep.periodic_passes import Upkeep


def test_a_topic_that_has_closed_is_left_out_and_nothing_is_begun_for_it() -> None:
    """A coroutine that is made and not awaited is a warning in the log."""
    done: list[str] = []

    def act(topic: Any) -> Any:
        async def work() -> int:
            done.append(topic.name)
            return 1

        return work()

    topics = {name: SimpleNamespace(name=name, closed=name == "closed") for name in ("one", "closed", "two")}
    upkeep = cast("Any", SimpleNamespace(_service=SimpleNamespace(topics=topics)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(Upkeep._each(upkeep, "a pass", act)) == 2
    assert done == ["one", "two"]
