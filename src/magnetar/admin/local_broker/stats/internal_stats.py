"""Ledgers and cursors of a topic in the shape of Apache Pulsar 4.0.8 (rule 4.2.6).

As in Pulsar the open ledger shows neither entries nor bytes in ``ledgers``; they are in ``currentLedger...``. Cursors
are kept in the journal here and have no ledgers of their own, hence the -1.
"""

from __future__ import annotations

import datetime

from magnetar.admin.local_broker.stats.acknowledged_stretches import stretches
from magnetar.admin.local_broker.stats.subscription_stats import SUBSCRIPTIONS_PER_TURN
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.topic import Topic
from magnetar.compaction.compaction_cursor import VIEW_PROPERTY, ViewFacts
from magnetar.model.ids import Position
from magnetar.model.policies import JsonObject
from magnetar.runtime.tasks import in_turns
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger


async def internal_stats(topic: Topic) -> JsonObject:
    """The answer to ``GET .../internalStats``."""
    cursors: JsonObject = {}
    waiting = 0
    async for subscription in in_turns(topic.subscriptions.each(), SUBSCRIPTIONS_PER_TURN):
        waits = _waits(subscription, topic.log)
        waiting += waits
        cursors[subscription.name] = await _cursor(subscription, topic.log, waits)
    stored = log_stats(topic.log)
    stored.update(waitingCursorsCount=waiting, cursors=cursors)
    if topic.termination.terminated:
        stored.update(state="Terminated", lastConfirmedEntry=str(topic.termination.last))
    return {**stored, "schemaLedgers": [], "compactedLedger": _compacted(topic)}


def log_stats(log: ManagedLedger) -> JsonObject:
    """The part of it that any log has, of a topic or not."""
    ledgers = log.table.ledgers
    current = ledgers[-1]
    return {
        "entriesAddedCounter": log.entries_added,
        "numberOfEntries": sum(ledger.entries for ledger in ledgers),
        "totalSize": log.retained_bytes(),
        "currentLedgerEntries": current.entries,
        "currentLedgerSize": current.bytes,
        "lastLedgerCreatedTimestamp": instant(current.opened_ms),
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": log.pending,
        "lastConfirmedEntry": str(_before(log, log.end)),
        "state": "LedgerOpened",
        "ledgers": [_ledger(ledger, open_=ledger is current) for ledger in ledgers],
        "cursors": {},
    }


def _compacted(topic: Topic) -> JsonObject:
    view = None if topic.compactor is None else topic.compactor.view
    return {
        "ledgerId": -1 if view is None else view.facts.ledger,
        "entries": -1 if view is None else view.entries,
        "size": -1 if view is None else view.bytes,
        "offloaded": False,
        "underReplicated": False,
    }


def _ledger(ledger: Ledger, *, open_: bool) -> JsonObject:
    return {
        "ledgerId": ledger.id,
        "entries": 0 if open_ else ledger.entries,
        "size": 0 if open_ else ledger.bytes,
        "offloaded": ledger.offload is not None,
        "underReplicated": False,
    }


async def _cursor(subscription: Subscription, log: ManagedLedger, waits: bool) -> JsonObject:
    stats = subscription.stats()
    holes: list[str] = []
    async for some in stretches(subscription.cursor):
        holes += acknowledged_ranges(log, some)
    return {
        "markDeletePosition": str(_before(log, stats.mark_delete + 1)),
        "readPosition": str(_place(log, stats.read_at)),
        "waitingReadOp": waits,
        "pendingReadOps": 0,
        "messagesConsumedCounter": log.entries_added - stats.backlog_entries,
        "cursorLedger": -1,
        "cursorLedgerLastEntry": -1,
        "individuallyDeletedMessages": f"[{','.join(holes)}]",
        "lastLedgerSwitchTimestamp": instant(log.table.ledgers[-1].opened_ms),
        "state": "Open",
        "active": bool(stats.consumers),
        "numberOfEntriesSinceFirstNotAckedMessage": stats.read_at - stats.mark_delete,
        "totalNonContiguousDeletedMessagesRange": len(holes),
        "subscriptionHavePendingRead": waits,
        "subscriptionHavePendingReplayRead": False,
        **_gaps(subscription, log),
        "properties": _properties(subscription),
    }


def _gaps(subscription: Subscription, log: ManagedLedger) -> JsonObject:
    """Damaged entries, a member of magnetar's own that is shown only where there are any."""
    unreadable = subscription.unreadable
    if unreadable.waiting is None and not unreadable.skipped:
        return {}
    waiting = [] if unreadable.waiting is None else [unreadable.waiting]
    return {
        "entriesUnreadableSkipped": unreadable.entries_skipped,
        "unreadableRangesSkipped": list(acknowledged_ranges(log, unreadable.skipped)),
        "unreadableRangesWaiting": list(acknowledged_ranges(log, waiting)),
    }


def _properties(subscription: Subscription) -> JsonObject:
    """Properties of the cursor, not of the subscription; only the compactor's cursor has any."""
    compacted = subscription.cursor.properties.get(VIEW_PROPERTY)
    return {"CompactedTopicLedger": ViewFacts.from_property(compacted).ledger} if isinstance(compacted, list) else {}


def acknowledged_ranges(log: ManagedLedger, ranges: list[tuple[int, int]]) -> list[str]:
    """Half-open ranges of ordinals as Pulsar writes them, ``(l:before..l:last]``, none across two ledgers."""
    shown = []
    for start, stop in ranges:
        while start < stop:
            ledger = log.table.holding(start)
            end = min(stop, ledger.end)
            shown.append(f"({ledger.id}:{start - ledger.ordinal - 1}..{ledger.id}:{end - 1 - ledger.ordinal}]")
            start = max(end, start + 1)
    return shown


def _waits(subscription: Subscription, log: ManagedLedger) -> bool:
    """Whether a consumer has permits and there is nothing to read."""
    stats = subscription.stats()
    return stats.read_at >= log.end and any(consumer.available_permits > 0 for consumer in stats.consumers)


def _before(log: ManagedLedger, ordinal: int) -> Position:
    """Position of the entry before ``ordinal``; entry -1 of the first ledger if there is none."""
    return log.position(ordinal - 1)


def _place(log: ManagedLedger, ordinal: int) -> Position:
    ledger = log.table.holding(ordinal)
    return Position(ledger.id, ordinal - ledger.ordinal)


def instant(ms: int) -> str:
    """A time as Pulsar writes it, in UTC with milliseconds."""
    at = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
