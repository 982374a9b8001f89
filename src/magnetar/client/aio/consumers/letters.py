"""The letters of one consumer: where they go, and when its originals are acknowledged."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

from magnetar.client.aio.consumers.dead_letters import DeadLetterSender
from magnetar.client.aio.consumers.letter_producer import (
    LetterAddress,
    LetterProducers,
    OpenOutlet,
    SchemaOfVersion,
)
from magnetar.client.aio.consumers.retry_letters import RetryLetterSender
from magnetar.client.aio.topics.consumer_options import ConsumerOptions, name_by_chance
from magnetar.client.machines.redelivery.redelivery_backoff import DELAY_MAX_MS
from magnetar.model.errors import InvalidValueError


class Letters:
    """What a consumer with a dead letter policy has beside its topics."""

    def __init__(
        self, options: ConsumerOptions, open_outlet: OpenOutlet, schema_of: SchemaOfVersion, rng: random.Random
    ) -> None:
        policy = options.delivery.policy
        assert policy is not None
        name = options.name or name_by_chance(rng)
        self.dead = DeadLetterSender(
            policy, options.subscription, name, options.schema, open_outlet, schema_of, name_by_chance(rng)
        )
        self.retry: RetryLetterSender | None = None
        if options.delivery.retry_enable:
            assert policy.retry_letter_topic is not None
            address = LetterAddress(policy.retry_letter_topic, schema=options.schema, parameters=policy.letter_producer)
            producers = LetterProducers(open_outlet, address, schema_of)
            self.retry = RetryLetterSender(self.dead, producers, options.subscription)

    async def close(self) -> None:
        """Wait for the copies that are on their way."""
        closing = [self.dead.close()]
        if self.retry is not None:
            closing.append(self.retry.close())
        await asyncio.gather(*closing)


def delay_ms(delay: float | timedelta) -> int:
    """Return milliseconds; a delay below 0 is none. Raises InvalidValueError."""
    found: object = delay.total_seconds() * 1_000 if isinstance(delay, timedelta) else delay
    if not isinstance(found, int | float) or not found <= DELAY_MAX_MS:
        raise InvalidValueError(f"a delay of {delay!r} is no number of milliseconds, no timedelta, or above ten years")
    return max(int(found), 0)
