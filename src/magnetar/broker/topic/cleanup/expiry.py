"""Messages that wait too long for their consumers (rules of 4.5): what expires counts as acknowledged.

On each subscription the first messages expire, up to the first that is not older than the limit: by its publish
time, whatever follows it. Every message is looked at once per subscription, when its turn has come.

The time of an entry whose metadata cannot be read is unknown: it expires with the message after it, or when its
ledger was closed before the limit.
"""

from __future__ import annotations

import asyncio
import logging

from magnetar.broker.topic.ports import Log
from magnetar.broker.topic.subscription.backlog import PIECE_ENTRIES, run_at
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.model.system_topics import COMPACTION_SUBSCRIPTION
from magnetar.protocol.stored_metadata import stored_publish_time
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

logger = logging.getLogger(__name__)


async def expire(subscription: Subscription, before_ms: int) -> int:
    """Let go of the first messages that were published before that time; how many entries.

    Raises what reading raised.
    """
    if subscription.name == COMPACTION_SUBSCRIPTION:
        return 0
    cursor, log = subscription.cursor, subscription.topic_log
    mark = cursor.mark_delete
    start = cursor.next_unacknowledged(max(mark + 1, log.first))
    at = reached = start
    pieces, unknown = 1, 0
    while at < log.end:
        # the first look is at one entry: mostly it is young, and nothing is to be done
        run = await run_at(log, at, pieces)
        young = False
        at = run.first
        for entry in run.entries:
            time = _time(log, at, entry)
            if time is None:
                unknown += 1
            elif time < before_ms or cursor.acknowledged(at):
                reached = at + 1
            else:
                young = True
                break
            at += 1
        if young:
            break
        pieces = PIECE_ENTRIES
        await asyncio.sleep(0)
    if unknown:
        logger.warning(
            "%s, subscription %s: %d entries have unreadable metadata; they expire with the entries that follow them",
            subscription.topic.name, subscription.name, unknown,
        )  # fmt: skip
    # while the disk was read a consumer may have sought back, and what stands there now was not looked at
    if reached == start or cursor.mark_delete < mark or subscription.closed:
        return 0
    return subscription.expire_until(reached - 1)


def _time(log: Log, ordinal: int, entry: bytes) -> int | None:
    """When it was published; of what cannot be read, when its ledger was closed, None if it is still open."""
    time = stored_publish_time(entry)
    if time is None and isinstance(log, ManagedLedger):
        return log.table.holding(ordinal).closed_ms or None
    return time
