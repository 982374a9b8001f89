"""Limits of rates."""

from __future__ import annotations

from magnetar.admin_api.models.record import ApiModel


class DispatchRateLimit(ApiModel):
    """How fast messages are sent to consumers."""

    dispatch_throttling_rate_in_msg: int = -1
    """Messages in a period; -1 is no limit."""
    dispatch_throttling_rate_in_byte: int = -1
    """Bytes in a period; -1 is no limit."""
    relative_to_publish_rate: bool = False
    """Whether the limits come on top of the rate at which the topic is published to."""
    rate_period_in_second: int = 1
    """Length of a period in seconds."""


class PublishRateLimit(ApiModel):
    """How fast messages are taken from producers."""

    publish_throttling_rate_in_msg: int = -1
    """Messages a second; -1 is no limit."""
    publish_throttling_rate_in_byte: int = -1
    """Bytes a second; -1 is no limit."""


class SubscribeRateLimit(ApiModel):
    """How often a consumer may connect."""

    subscribe_throttling_rate_per_consumer: int = -1
    """Subscriptions in a period; -1 is no limit."""
    rate_period_in_second: int = 30
    """Length of a period in seconds."""
