"""How a consumer acknowledges, and what happens to messages that it does not acknowledge."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypedDict

from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.redelivery.ack_timeouts import AckTimeoutLimits
from magnetar.client.machines.redelivery.dead_letter_policy import RETRIES_DEFAULT, ConsumerDeadLetterPolicy
from magnetar.client.machines.redelivery.redeliveries import RedeliveryLimits
from magnetar.client.machines.redelivery.redelivery_backoff import DELAY_MAX_MS, RedeliveryBackoff, seconds_of
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType

_LOG: Final = logging.getLogger(__name__)
_NACK_DELAY_MIN_MS: Final = 100
_GROUP_TIME_MAX_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOptions:
    """What one consumer was subscribed with."""

    limits: RedeliveryLimits = field(default_factory=RedeliveryLimits)
    policy: ConsumerDeadLetterPolicy | None = None
    retry_enable: bool = False
    batch: ConsumerBatchReceivePolicy = field(default_factory=ConsumerBatchReceivePolicy)
    ack_group_time: float = 0.0
    """Seconds that acknowledgements wait for others; 0 is the end of the turn of the loop."""
    ack_group_size: int = 1_000
    """As many do not wait any longer."""
    ack_receipts: bool = False

    @property
    def retry_topics(self) -> tuple[str, ...]:
        """The retry letter topic, once it has a name; none without retries."""
        if not self.retry_enable or self.policy is None or self.policy.retry_letter_topic is None:
            return ()
        return (TopicName.parse(self.policy.retry_letter_topic).fqn,)


class DeliveryParameters(TypedDict, total=False):
    """Parameters of `Client.subscribe` about acknowledgement and redelivery that the official Python client has not;
    docs/client-retries.md explains them."""

    negative_ack_redelivery_backoff: RedeliveryBackoff | None
    """By the redelivery count, instead of a fixed delay."""
    ack_timeout_tick_ms: float
    """1,000 by default: what is over the time-out is looked for so often."""
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None
    """Is added to ``unacked_messages_timeout_ms``."""
    retry_enable: bool
    """Subscribe to a retry letter topic, too, and permit `Consumer.reconsume_later`."""
    ack_group_time_ms: float
    """Acknowledgements wait so long for others; 0, the default, is the end of the turn of the loop."""
    max_ack_group_size: int
    """1,000 by default: as many do not wait any longer."""
    ack_receipt_enabled: bool
    """Whether `Consumer.acknowledge` waits until the broker has stored it."""


def delivery_options(
    sub_type: SubType,
    rng: random.Random,
    *,
    negative_ack_redelivery_delay_ms: float = 60_000,
    negative_ack_redelivery_backoff: RedeliveryBackoff | None = None,
    unacked_messages_timeout_ms: float | None = None,
    ack_timeout_tick_ms: float = 1_000,
    ack_timeout_redelivery_backoff: RedeliveryBackoff | None = None,
    retry_enable: bool = False,
    dead_letter_policy: ConsumerDeadLetterPolicy | None = None,
    batch_receive_policy: ConsumerBatchReceivePolicy | None = None,
    ack_group_time_ms: float = 0,
    max_ack_group_size: int = 1_000,
    ack_receipt_enabled: bool = False,
) -> DeliveryOptions:
    """Return what belongs to `DeliveryParameters` and their like with official names.

    ``negative_ack_redelivery_delay_ms``: 100 at least. ``unacked_messages_timeout_ms``: a message that the application
    has had for so long comes again; None or 0 is off, 1,000 the least. ``batch_receive_policy``: when
    `Consumer.batch_receive` returns. Raises InvalidValueError.
    """
    if not _NACK_DELAY_MIN_MS <= negative_ack_redelivery_delay_ms <= DELAY_MAX_MS:
        raise InvalidValueError(
            f"negative_ack_redelivery_delay_ms {negative_ack_redelivery_delay_ms} is below {_NACK_DELAY_MIN_MS}, "
            "or above ten years"
        )
    if not 0 <= ack_group_time_ms <= _GROUP_TIME_MAX_MS or max_ack_group_size < 1:
        raise InvalidValueError(
            f"ack_group_time_ms is from 0 to {_GROUP_TIME_MAX_MS}, and max_ack_group_size at least 1"
        )
    shared = sub_type in (SubType.Shared, SubType.Key_Shared)
    policy = dead_letter_policy
    if policy is None and retry_enable:
        policy = ConsumerDeadLetterPolicy(RETRIES_DEFAULT)
    if policy is not None and not shared and not retry_enable:
        raise InvalidValueError(
            f"dead_letter_policy has no effect on {sub_type.name}, where brokers do not count redeliveries: "
            "subscribe as Shared or Key_Shared, or with retry_enable"
        )
    if policy is not None and policy.retry_letter_topic is not None and not retry_enable:
        raise InvalidValueError("retry_letter_topic has no effect without retry_enable")
    backoff, patience = negative_ack_redelivery_backoff, ack_timeout_redelivery_backoff
    return DeliveryOptions(
        limits=RedeliveryLimits(
            negative_ack_delay=negative_ack_redelivery_delay_ms / 1_000,
            negative_ack_backoff=None if backoff is None else seconds_of(backoff, rng.random),
            ack_timeout=AckTimeoutLimits.of_ms(
                unacked_messages_timeout_ms,
                ack_timeout_tick_ms,
                None if patience is None else _guarded(seconds_of(patience, rng.random)),
            ),
            max_redeliver_count=None if policy is None or not shared else policy.max_redeliver_count,
        ),
        policy=policy,
        retry_enable=retry_enable,
        batch=batch_receive_policy or ConsumerBatchReceivePolicy(),
        ack_group_time=ack_group_time_ms / 1_000,
        ack_group_size=max_ack_group_size,
        ack_receipts=ack_receipt_enabled,
    )


def _guarded(seconds: Callable[[int], float]) -> Callable[[int], float]:
    """Return a backoff that is asked while a message is handed out, which must not be lost by its error."""

    def quiet(redelivery_count: int) -> float:
        try:
            return seconds(redelivery_count)
        except Exception:
            _LOG.exception("ack_timeout_redelivery_backoff failed; the time-out counts without it")
            return 0.0

    return quiet
