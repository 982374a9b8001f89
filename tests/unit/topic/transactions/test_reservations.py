"""What transactions reserve on a subscription, and that an end leaves nothing of it behind (rule 9.12)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from magnetar.protocol.commands.ids import TxnId
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic


@pytest.mark.parametrize("commit", [True, False])
def test_after_their_end_a_subscription_is_read_as_before_them(commit: bool) -> None:
    """What holds entries back while transactions are open is asked for nothing afterwards, however many there were."""

    async def main() -> None:
        place = LoadedTopic()
        for i in range(6):
            place.append("k", str(i))
        place.topic.create_subscription("s", 0)
        await place.durable()
        transactions, subscription = place.topic.transacting(), place.topic.subscriptions["s"]
        assert subscription.pump.dispatch_filter is not None
        rules = list(subscription.pump.dispatch_filter._all)
        nobody = cast(Any, None)  # no consumer is there from whom it could be taken
        for number in range(3):
            txn = TxnId(0, number)
            transactions.acknowledge(subscription, nobody, txn, [number], [], lambda: None)
            await place.durable()
            assert len(subscription.pump.dispatch_filter._all) == len(rules) + 1
            assert subscription.pump.sender.parts is not subscription.cursor
            transactions.end(txn, commit=commit, sent=False)
            await place.durable()
            assert subscription.pump.dispatch_filter._all == rules
            assert subscription.pump.sender.parts is subscription.cursor
        assert subscription.cursor.mark_delete == (2 if commit else -1)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())
