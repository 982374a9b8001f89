"""The limits that many topics share: those of the broker, and those of each resource group."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

from magnetar.broker.throttling.passes import Passes
from magnetar.broker.throttling.rate_limit import LimitLevel, RateAmounts, RateLimit
from magnetar.model.topic_policies import ResourceGroup


class BrokerRates(NamedTuple):
    """What the settings say of the broker as a whole."""

    publish: RateAmounts = RateAmounts()
    """brokerPublisherThrottlingMaxMessageRate and ...MaxByteRate."""
    dispatch: RateAmounts = RateAmounts()
    """dispatchThrottlingRateInMsg and ...InByte."""
    entries_for_messages: bool = False
    """dispatchThrottlingOnBatchMessageEnabled: a batch is charged as one message when it is dispatched."""
    also_caught_up: bool = True
    """dispatchThrottlingOnNonBacklogConsumerEnabled: subscriptions that keep up are limited as well."""


class SharedLimits:
    """Each is made when the first topic asks for it, so a broker without limits has none."""

    def __init__(self, rates: BrokerRates | None = None) -> None:
        self.rates = rates or BrokerRates()
        self.passes = Passes()
        """Passes over the subscriptions of topics."""
        self._broker_publish: RateLimit | None = None
        self._broker_dispatch: RateLimit | None = None
        self._of_groups: WeakValueDictionary[tuple[str, str, RateAmounts], RateLimit] = WeakValueDictionary()

    def publish(self, group: ResourceGroup | None) -> tuple[RateLimit, ...]:
        """What limits publishing to a topic beyond its own rate; ``group`` is the one its namespace is in."""
        limits = self._of_group(group, "publish")
        if self.rates.publish.limited:
            if self._broker_publish is None:
                name = "brokerPublisherThrottlingMaxMessageRate, brokerPublisherThrottlingMaxByteRate"
                self._broker_publish = RateLimit(LimitLevel.BROKER, name, self.rates.publish)
            limits = (*limits, self._broker_publish)
        return limits

    def dispatch(self, group: ResourceGroup | None) -> tuple[RateLimit, ...]:
        """What limits dispatching from a topic beyond its own rates."""
        limits = self._of_group(group, "dispatch")
        if self.rates.dispatch.limited:
            if self._broker_dispatch is None:
                name = "dispatchThrottlingRateInMsg, dispatchThrottlingRateInByte"
                self._broker_dispatch = RateLimit(LimitLevel.BROKER, name, self.rates.dispatch)
            limits = (*limits, self._broker_dispatch)
        return limits

    def _of_group(self, group: ResourceGroup | None, way: str) -> tuple[RateLimit, ...]:
        if group is None:
            return ()
        amounts = RateAmounts(*(group.publish if way == "publish" else group.dispatch))
        if not amounts.limited:
            return ()
        key = (group.name, way, amounts)
        limit = self._of_groups.get(key)
        if limit is None:
            limit = RateLimit(LimitLevel.RESOURCE_GROUP, f"{way} rate of the resource group {group.name}", amounts)
            self._of_groups[key] = limit
        return (limit,)

    def set_rates(self, rates: BrokerRates, choose: Callable[[], None]) -> None:
        """Take other rates of the broker; who waits for the old limits goes on under the new ones.

        ``choose`` lets all topics choose their limits again; it is called if the rates are others.
        """
        before, self.rates = self.rates, rates
        old: list[RateLimit | None] = []
        if before.publish != rates.publish:
            old.append(self._broker_publish)
            self._broker_publish = None
        if before.dispatch != rates.dispatch:
            old.append(self._broker_dispatch)
            self._broker_dispatch = None
        if before != rates:
            choose()
        for limit in old:
            if limit is not None:
                limit.close()
