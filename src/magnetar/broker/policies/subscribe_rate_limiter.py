"""The policy ``subscribeRate``: how often one consumer may subscribe to one topic (rule 14.6).

A consumer is identified by its host, name and id. A period begins with its first SUBSCRIBE, and the next period with
the first one after that. Only the consumers of the current periods are remembered.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import NotAllowedError
from magnetar.model.topic_policies import SubscribeRate

_TIDY_ABOVE: Final = 1024


class ConsumerIdentifier(NamedTuple):
    """One consumer, across its SUBSCRIBEs."""

    topic: str
    host: str
    consumer_name: str
    consumer_id: int


class _Period(NamedTuple):
    end: float
    subscribed: int


class SubscribeRateLimiter:
    """The limiter of the whole broker; a topic without a limit leaves no trace."""

    def __init__(self) -> None:
        self._periods: dict[ConsumerIdentifier, _Period] = {}
        self._tidy_above = _TIDY_ABOVE

    def check(self, rate: SubscribeRate, who: ConsumerIdentifier, now: float) -> None:
        """Count one SUBSCRIBE at ``now`` (steady, seconds). Raises NotAllowedError if it is one too many."""
        if rate.per_consumer <= 0:
            return
        period = self._periods.get(who)
        if period is None or now >= period.end:
            period = _Period(now + max(rate.period_s, 1), 0)
        if period.subscribed >= rate.per_consumer:
            raise NotAllowedError("Subscribe limited by subscribe rate limit per consumer.")
        self._periods[who] = period._replace(subscribed=period.subscribed + 1)
        if len(self._periods) > self._tidy_above:
            self._periods = {key: value for key, value in self._periods.items() if value.end > now}
            self._tidy_above = max(_TIDY_ABOVE, 2 * len(self._periods))

    def __len__(self) -> int:
        return len(self._periods)
