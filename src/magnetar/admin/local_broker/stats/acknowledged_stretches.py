"""What a subscription has acknowledged above its mark, a part in each turn: there may be half a million stretches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import islice
from typing import Final

from magnetar.broker.topic.ports import SubscriptionCursor

PER_TURN: Final = 2000
"""So many are listed before others have a turn."""
_FEW: Final = 40
"""After so many others need no turn yet: thousands of subscriptions may have a few each."""


async def stretches(cursor: SubscriptionCursor) -> AsyncIterator[list[tuple[int, int]]]:
    """Half-open ranges of ordinals, ascending, a list in each turn; what is acknowledged meanwhile may be in them."""
    at = 0
    while some := list(islice(cursor.acknowledged_ranges(at), PER_TURN)):
        yield some
        if len(some) > _FEW:
            await asyncio.sleep(0)
        if len(some) < PER_TURN:
            return
        at = some[-1][1]
