"""The metadata of a topic's ledgers and cursors in the shape of Apache Pulsar 4.0.8.

Pulsar shows records of its metadata store, with versions and dates; here the journal holds them. Versions count the
ledgers that are there, dates are those of the first and the last of them.
"""

from __future__ import annotations

from typing import Final

from magnetar.admin.local_broker.stats.acknowledged_stretches import stretches
from magnetar.admin.local_broker.stats.internal_stats import instant
from magnetar.admin.local_broker.stats.subscription_stats import SUBSCRIPTIONS_PER_TURN
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.model.policies import JsonObject
from magnetar.runtime.tasks import in_turns
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

_STRETCHES_SHOWN: Final = 10_000
"""So many of what is acknowledged one by one are in Apache Pulsar's metadata at most
(managedLedgerMaxUnackedRangesToPersist); ``internalStats`` has all."""


async def managed_ledger_info(topic: Topic) -> JsonObject:
    """The answer to ``GET .../internal-info``."""
    log = topic.log
    ledgers = list(log.table.ledgers)
    dates: JsonObject = {
        "version": len(ledgers),
        "creationDate": instant(ledgers[0].opened_ms),
        "modificationDate": instant(ledgers[-1].opened_ms),
    }
    cursors: JsonObject = {}
    async for one in in_turns(topic.subscriptions.each(), SUBSCRIPTIONS_PER_TURN):
        cursors[one.name] = {**dates, **await _cursor(one, log)}
    last = topic.termination.last if topic.termination.terminated else None
    return {
        **dates,
        "ledgers": [_ledger(ledger) for ledger in ledgers],
        **({} if last is None else {"terminatedPosition": {"ledgerId": last.ledger, "entryId": last.entry}}),
        "cursors": cursors,
    }


def _ledger(ledger: Ledger) -> JsonObject:
    counts: JsonObject = {} if not ledger.closed_ms else {"entries": ledger.entries, "size": ledger.bytes}
    copied = ledger.offload is not None
    return {
        "ledgerId": ledger.id, **counts, "timestamp": ledger.closed_ms, "isOffloaded": copied,
    }  # fmt: skip


async def _cursor(subscription: Subscription, log: ManagedLedger) -> JsonObject:
    marked = log.position(subscription.stats().mark_delete)
    holes: list[JsonObject] = []
    async for some in stretches(subscription.cursor):
        for start, stop in some[: _STRETCHES_SHOWN - len(holes)]:
            before, last = log.position(start - 1), log.position(stop - 1)
            holes.append({
                "from": {"ledgerId": before.ledger, "entryId": before.entry},
                "to": {"ledgerId": last.ledger, "entryId": last.entry},
            })  # fmt: skip
        if len(holes) >= _STRETCHES_SHOWN:
            break
    return {
        "cursorsLedgerId": -1,
        "markDelete": {"ledgerId": marked.ledger, "entryId": marked.entry},
        **({"individualDeletedMessages": [*holes]} if holes else {}),
    }
