"""Messages that wait too long for their consumers (SEMANTICS 4.5): what expires counts as acknowledged.

Of each subscription the messages in front expire, up to the first that is not older than the limit: by its publish
time, whatever stands behind it. Every message is looked at once per subscription, when its turn has come.
"""

from __future__ import annotations

from magnetar.broker.topic.backlog import run_at
from magnetar.broker.topic.compaction.compactor import SUBSCRIPTION as COMPACTION
from magnetar.broker.topic.subscription import Subscription
from magnetar.protocol.entries import publish_time


async def expire(subscription: Subscription, before_ms: int) -> int:
    """Let go of the messages in front that were published before that time; how many entries.

    Raises what reading raised.
    """
    if subscription.name == COMPACTION:
        return 0
    cursor, log = subscription.cursor, subscription.stored
    mark = cursor.mark_delete
    start = cursor.next_unacknowledged(max(mark + 1, log.first))
    at, pieces = start, 1
    while at < log.end:
        # the first look is at one entry: mostly it is young, and nothing is to be done
        run = await run_at(log, at, pieces)
        first = run.first
        young = next(
            (
                i
                for i, entry in enumerate(run.entries)
                if publish_time(entry) >= before_ms and not cursor.acknowledged(first + i)
            ),
            None,
        )
        at = run.first + (len(run.entries) if young is None else young)
        if young is not None:
            break
        pieces = 1000
    # while the disk was read somebody may have sought back, and what stands there now was not looked at
    if at == start or cursor.mark_delete < mark or subscription.closed:
        return 0
    return subscription.expire_until(at - 1)
