"""Who may subscribe: the limits of a topic, in the order in which Pulsar asks them (rules 5.1.5, 5.1.6).

A subscription's own limit is asked when the consumer joins it. Limits that change hold for those who come from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.model.errors import ConsumerBusyError, NotAllowedError
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies


def check_consumer(topic: str, policies: TopicPolicies, sub_type: SubType, consumers: Callable[[], int]) -> None:
    """Whether one more consumer of this type may come to a topic that has so many. Raises what SUBSCRIBE answers.

    They are counted only if there is a limit: a topic may have ten thousand readers.
    """
    if sub_type.name not in policies.subscription_types_enabled:
        raise NotAllowedError(f"Topic[{{{topic}}}] doesn't support {sub_type.name} sub type!")
    if policies.max_consumers and consumers() >= policies.max_consumers:
        raise ConsumerBusyError("Topic reached max consumers limit")


def check_subscription(topic: str, policies: TopicPolicies, subscriptions: int) -> None:
    """Whether one more subscription may be made, durable or not."""
    if policies.max_subscriptions and subscriptions >= policies.max_subscriptions:
        raise NotAllowedError(f"Exceed the maximum number of subscriptions of the topic: {topic}")


def with_policies(settings: DispatchSettings, policies: TopicPolicies) -> DispatchSettings:
    """The settings that a topic's subscriptions obey while these policies hold; the same object for many topics."""
    return _limited(
        settings, policies.max_consumers_per_subscription, policies.max_unacked_per_consumer,
        policies.max_unacked_per_subscription,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _limited(
    settings: DispatchSettings, consumers: int, unacked_per_consumer: int, unacked_per_subscription: int
) -> DispatchSettings:
    return replace(
        settings,
        max_consumers_per_subscription=consumers,
        max_unacked_messages_per_consumer=unacked_per_consumer,
        max_unacked_messages_per_subscription=unacked_per_subscription,
    )
