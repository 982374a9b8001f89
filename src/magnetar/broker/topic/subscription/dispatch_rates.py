"""How fast a topic dispatches: the limits of its subscriptions, of itself and of what it belongs to (rule 14.6).

Made when a policy or setting first limits the topic. Each subscription has its own limit (``subscriptionDispatchRate``)
and shares that of the topic (``dispatchRate``), of its resource group and of the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from typing_extensions import override

from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.broker.throttling.shared_limits import SharedLimits
from magnetar.broker.topic.dispatch.dispatch_throttle import DispatchThrottle
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.broker.topic.topic_feature import TopicFeature
from magnetar.model.topic_policies import DispatchRate, TopicPolicies

_PACE_S: Final = 1.0
"""How often a rate relative to publishing looks how much is published."""


def limits_dispatch(policies: TopicPolicies, shared: SharedLimits) -> bool:
    """Whether anything limits what a topic with these policies dispatches."""
    rates = (policies.dispatch_rate, policies.subscription_dispatch_rate, *policies.dispatch_rates.values())
    return any(_amounts(rate).limited for rate in rates) or bool(shared.dispatch(policies.resource_group))


class DispatchRates(TopicFeature):
    """One topic's; ``published`` returns how many messages and bytes were published to it since it was loaded."""

    def __init__(
        self, subscriptions: Subscriptions, policies: TopicPolicies, shared: SharedLimits,
        published: Callable[[], tuple[int, int]],
    ) -> None:  # fmt: skip
        self._subscriptions = subscriptions
        self._policies = policies
        self._shared = shared
        self._published = published
        self._of_topic: RateLimit | None = None
        self._topic_rate = DispatchRate()
        self._of_subscriptions: dict[str, tuple[DispatchRate, RateLimit | None]] = {}
        subscriptions.added = self._equip
        self.choose()

    @override
    def policies_changed(self, before: TopicPolicies, now: TopicPolicies) -> None:
        self._policies = now
        self.choose()

    def choose(self) -> None:
        """Choose the limits of every loaded subscription by the policies and settings of now."""
        rate = self._policies.dispatch_rate
        if rate != self._topic_rate:
            self._topic_rate = rate
            self._of_topic = self._limit(rate, LimitLevel.TOPIC, "dispatchRate")
        for subscription in self._subscriptions.loaded():
            self._equip(subscription)

    def _equip(self, subscription: Subscription) -> None:
        name = subscription.name
        rate = self._policies.dispatch_rate_of(name)
        known, own = self._of_subscriptions.get(name, (DispatchRate(), None))
        if rate != known:
            own = self._limit(rate, LimitLevel.SUBSCRIPTION, "subscriptionDispatchRate")
            self._of_subscriptions[name] = rate, own
        limits = tuple(limit for limit in (own, self._of_topic) if limit is not None)
        limits += self._shared.dispatch(self._policies.resource_group)
        throttle = subscription.pump.throttle
        if throttle is None:
            if not limits:
                return
            throttle = DispatchThrottle(subscription.pump, subscription.cursor)
        broker = self._shared.rates
        throttle.set_limits(
            limits, entries_for_messages=broker.entries_for_messages, also_caught_up=broker.also_caught_up
        )

    def _limit(self, rate: DispatchRate, level: LimitLevel, name: str) -> RateLimit | None:
        amounts = _amounts(rate)
        if not amounts.limited:
            return None
        limit = RateLimit(level, name, amounts)
        if rate.relative_to_publish_rate:
            limit.follow(self._relative(amounts), _PACE_S)
        return limit

    def _relative(self, amounts: RateAmounts) -> Callable[[], RateAmounts]:
        """The rate on top of what was published lately (``relativeToPublishRate``)."""
        time = asyncio.get_running_loop().time
        seen, at = self._published(), time()

        def now() -> RateAmounts:
            nonlocal seen, at
            published, moment = self._published(), time()
            periods = max(moment - at, 1e-3) / max(amounts.period_s, 1)
            added = [round((new - old) / periods) for new, old in zip(published, seen, strict=True)]
            seen, at = published, moment
            return RateAmounts(
                amounts.messages + added[0] if amounts.messages > 0 else 0,
                amounts.bytes + added[1] if amounts.bytes > 0 else 0,
                amounts.period_s,
            )

        return now

    @override
    def subscription_gone(self, name: str) -> None:
        self._of_subscriptions.pop(name, None)

    @override
    def close(self) -> None:
        self._subscriptions.added = None


def _amounts(rate: DispatchRate) -> RateAmounts:
    return RateAmounts(rate.messages, rate.bytes, max(rate.period_s, 1))
