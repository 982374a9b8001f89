"""How long the open batches of one producer wait for company (rule 3.5.1).

Who sends little waits for nothing: a batch to which hardly anything would come, at the rate of the last few, is due
at once, and goes at the end of the turn. Who sends much has full batches. A sender that waits for a receipt does not
wait for company as well: such a batch goes as soon as nothing else is on its way.
"""

from __future__ import annotations

from typing import Final

NEVER: Final = float("inf")
_COMPANY_MIN: Final = 4
"""Messages of a batch from which waiting for them pays."""
_BATCHES_LOOKED_AT: Final = 4
"""How many of the last batches say the rate: one alone would overstate it where a late timer brought two together."""
_UNASKED_DELAY_MAX: Final = 0.01
"""Seconds that batches wait by default; a longer delay is wanted, and kept."""


class BatchWait:
    """When the open batches are due; there is one for all of a producer."""

    __slots__ = ("_before", "_delay", "_hurried", "_messages_before", "since", "until")

    def __init__(self, delay: float) -> None:
        """``delay``: seconds at most."""
        self.since = NEVER
        """When the first message came; `NEVER` if no batch is open."""
        self.until = NEVER
        """When they are to be sent; `NEVER` if no batch is open."""
        self._delay = delay
        self._hurried = False
        self._before = [(-NEVER, 0)] * _BATCHES_LOOKED_AT
        """When each of the last batches was begun, and how many messages it had."""
        self._messages_before = 0

    def begin(self, now: float) -> None:
        """Note the first message."""
        delay = self._delay
        lonely = self._messages_before * delay < _COMPANY_MIN * (now - self._before[0][0])
        self.since = now
        self.until = now if lonely and delay <= _UNASKED_DELAY_MAX else now + delay

    def end(self, messages: int) -> float:
        """Note that they are sent, with so many messages; returns when the first one came."""
        since, self.since, self.until = self.since, NEVER, NEVER
        if messages:
            self._messages_before += messages - self._before[0][1]
            del self._before[0]
            self._before.append((since, messages))
        self._hurried = False
        return since

    def hurry(self, *, any_delay: bool, idle: bool) -> None:
        """Note that a caller waits for what is open; ``any_delay``: even if more than the usual delay was asked for.

        ``idle``: whether nothing else is on its way.
        """
        if any_delay or self._delay <= _UNASKED_DELAY_MAX:
            self._hurried = True
            if idle:
                self.until = self.since

    def nothing_else(self) -> None:
        """Note that nothing else is on its way any more."""
        if self._hurried:
            self.until = self.since
