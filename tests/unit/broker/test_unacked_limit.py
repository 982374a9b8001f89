"""How often the limit of unacknowledged messages of the whole broker changes something (rule 5.9.10)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.broker.upkeep.unacked_limit import UnackedLimit
from magnetar.config.settings import Settings
from tests.sim.world import World, run_seed


@pytest.mark.parametrize(("takes", "between"), [(0.0, 1.0), (0.5, 11.5), (100.0, 131.0)])
def test_changes_that_take_long_are_rare(takes: float, between: float) -> None:
    """All loaded topics hear of each: clients could have the broker do nothing else."""

    async def simulation(_: World) -> None:
        loop = asyncio.get_running_loop()
        dispatcher = SimpleNamespace(unacked=0)
        subscription = SimpleNamespace(pump=SimpleNamespace(dispatcher=dispatcher))
        changes: list[tuple[float, int]] = []

        def changed(share: int) -> None:
            changes.append((loop.time(), share))
            dispatcher.unacked = 0 if share else 10

        service: Any = SimpleNamespace(
            settings=Settings(maxUnackedMessagesPerBroker=10, maxUnackedMessagesPerSubscriptionOnBrokerBlocked=0.2),
            topics={"t": SimpleNamespace(loaded_subscriptions=lambda: [subscription])},
            set_unacked_share=changed,
            policy_notification=SimpleNamespace(all_notified=lambda: asyncio.sleep(takes)),
        )
        limit = UnackedLimit(service)
        changed(0)
        limit.start()
        await asyncio.sleep(600)
        await limit.close()
        times = [time for time, _ in changes[1:]]
        assert [share for _, share in changes[1:6]] == [2, 0, 2, 0, 2][: len(changes) - 1]
        assert [b - a for a, b in pairwise(times)] == pytest.approx([between] * (len(times) - 1))
        assert len(times) > 3

    run_seed(simulation, 1)
