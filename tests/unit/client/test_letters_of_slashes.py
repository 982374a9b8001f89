"""Letters of a subscription with a slash in its name: the default name of their topic would be none."""

from __future__ import annotations

import logging

import pytest

from magnetar.client.errors import ArgumentError
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.protocol.commands import SubType
from tests.sim.world import T
from tests.support.delivery_stage import DLQ, RETRY, Stage, nothing, play


def test_a_consumer_with_retries_is_told_what_to_give() -> None:
    async def story(stage: Stage) -> None:
        for policy in (ConsumerDeadLetterPolicy(2), ConsumerDeadLetterPolicy(2, retry_letter_topic=RETRY)):
            with pytest.raises(
                ArgumentError, match=r"'a/b' has a slash in its name, .* give a (dead|retry)_letter_topic"
            ):
                await stage.client.subscribe(
                    T, "a/b", consumer_type=SubType.Shared, retry_enable=True, dead_letter_policy=policy
                )
        named = ConsumerDeadLetterPolicy(2, dead_letter_topic=DLQ, retry_letter_topic=RETRY)
        await stage.client.subscribe(
            T, "a/b", consumer_type=SubType.Shared, retry_enable=True, dead_letter_policy=named
        )

    play(story)


def test_a_dead_letter_comes_again_and_the_log_says_what_to_give(caplog: pytest.LogCaptureFixture) -> None:
    async def story(stage: Stage) -> None:
        with caplog.at_level(logging.WARNING):
            consumer = await stage.client.subscribe(
                T, "a/b", consumer_type=SubType.Shared, negative_ack_redelivery_delay_ms=100,
                dead_letter_policy=ConsumerDeadLetterPolicy(1),
            )  # fmt: skip
            await stage.send(b"a")
            for _ in range(2):
                await consumer.negative_acknowledge(await consumer.receive(60_000))
            await nothing(consumer, 5)
            assert stage.backlog(subscription="a/b") == 1

    play(story)
    assert "give a dead_letter_topic in dead_letter_policy" in caplog.text
