"""Everything gets through, whatever consumers, sockets and the disk do meanwhile.

Random events from a seed on a whole subscription with storage's own cursor. Every delivery is judged when it happens:
no acknowledged entry, no other consumer has it out, one holder per key and first deliveries of a key in order on
Key_Shared (rules 5.6.9, 5.6.10, 5.6.15), nothing that nobody can read and that was out when a connection was lost. In
the end every entry must have been acknowledged.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from magnetar.broker.topic.dispatch import suspect_entries
from magnetar.model.subscription_types import SubType
from tests.support.subscription_churn import Churn, publish_time

SEEDS = range(max(1, round(8 * float(os.environ.get("MAGNETAR_SEEDS", "1")))))
"""``make churn`` runs 1,000 on Key_Shared."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("sub_type", "ring"),
    [
        (SubType.Exclusive, False), (SubType.Failover, False), (SubType.Shared, False),
        (SubType.Key_Shared, False), (SubType.Key_Shared, True),
    ],
    ids=["exclusive", "failover", "shared", "key_shared-ranges", "key_shared-ring"],
)  # fmt: skip
def test_everything_gets_through(sub_type: SubType, ring: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspect_entries, "stored_publish_time", publish_time)

    async def run() -> None:
        churn = Churn(sub_type, seed, ring)
        for _ in range(500):
            churn.step()
            if churn.subscription.dispatcher is not None:
                churn.subscription.dispatcher.check()
            if churn.rng.random() < 0.2:
                await asyncio.sleep(0)
        assert churn.witness.deliveries > 50
        await churn.finish()
        churn.subscription.close()

    asyncio.run(run())
