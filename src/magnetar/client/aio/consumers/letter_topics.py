"""Which topics the letters of a consumer go to (rules 6.4.1, 6.4.2 and 6.5.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from magnetar.client.aio.topics.consumer_options import ConsumerOptions
from magnetar.client.machines.redelivery.dead_letter_policy import (
    base_topic,
    dead_letter_topic,
    older_name,
    retry_letter_topic,
)
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName

Find = Callable[[], Awaitable[list[str]]]
Internal = Callable[[Sequence[str]], Awaitable[list[str]]]


async def with_letter_topics(
    options: ConsumerOptions, topic: str, exists: Callable[[str], Awaitable[bool]]
) -> ConsumerOptions:
    """Return options whose policy names its topics, where there is a retry letter topic; an older one is gone on with.

    ``topic``: the first that is subscribed to; ``exists`` says whether a topic is there (rule 6.4.2). Raises
    ArgumentError for a subscription whose name cannot stand in that of a topic.
    """
    policy = options.delivery.policy
    if policy is None or not options.delivery.retry_enable:
        return options
    subscription = options.subscription

    async def name(given: str | None, suffix: str, default: Callable[[str, str], str]) -> str:
        if given is not None:
            return given
        found = default(topic, subscription)
        older = older_name(topic, subscription, suffix)
        return older if await exists(older) else found

    retry, dead = await asyncio.gather(
        name(policy.retry_letter_topic, "RETRY", retry_letter_topic),
        name(policy.dead_letter_topic, "DLQ", dead_letter_topic),
    )
    named = replace(policy, retry_letter_topic=retry, dead_letter_topic=dead)
    return replace(options, delivery=replace(options.delivery, policy=named))


def with_retries(options: ConsumerOptions, matching: Find, internal: Internal) -> Find:
    """Return what finds the topics of a pattern without those that the subscription's own letters go to, and the retry
    letter topic. ``internal`` says which internal topics some topics have.

    Raises InvalidValueError where a pattern leaves open which topics retries go to.
    """
    policy = options.delivery.policy
    if policy is None:
        return matching
    named = [
        TopicName.parse(one).fqn for one in (policy.dead_letter_topic, policy.retry_letter_topic) if one is not None
    ]
    if options.delivery.retry_enable and len(named) < 2:
        raise InvalidValueError(
            "retry_enable with a pattern needs a dead_letter_policy with retry_letter_topic and dead_letter_topic"
        )
    suffix = f"-{options.subscription}-DLQ"

    async def find() -> list[str]:
        found = [
            one for one in await matching() if base_topic(one) not in named and not base_topic(one).endswith(suffix)
        ]
        return found + await internal(options.delivery.retry_topics)

    return find
