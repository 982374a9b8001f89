"""Options with the official client's names: what they become, and what is refused before anything is opened."""

from __future__ import annotations

from typing import Any

import pytest

import magnetar
from magnetar.client.aio.client import Client
from magnetar.client.aio.topics.producer_options import ProducerOptions
from magnetar.client.errors import ArgumentError
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.model.subscription_types import IntRange, KeySharedMeta, KeySharedMode
from tests.support.delivery_stage import Stage, play

Policy = magnetar.ConsumerKeySharedPolicy


def test_a_policy_of_keys() -> None:
    assert Policy().policy() == KeySharedMeta(KeySharedMode.AUTO_SPLIT)
    one = Policy(magnetar.KeySharedMode.Sticky, True, [(0, 9), (20, 65_535)])
    assert one.policy() == KeySharedMeta(KeySharedMode.STICKY, (IntRange(0, 9), IntRange(20, 65_535)), True)
    assert one.key_shared_mode is magnetar.KeySharedMode.Sticky and one.allow_out_of_order_delivery
    assert one.sticky_ranges == [(0, 9), (20, 65_535)]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"key_shared_mode": KeySharedMode.Sticky}, "belong together"),
        ({"key_shared_mode": KeySharedMode.Sticky, "sticky_ranges": []}, "belong together"),
        ({"sticky_ranges": [(0, 1)]}, "belong together"),
        ({"key_shared_mode": KeySharedMode.Sticky, "sticky_ranges": [(0, 65_536)]}, "from 0 to 65535"),
        ({"key_shared_mode": KeySharedMode.Sticky, "sticky_ranges": [(-1, 5)]}, "from 0 to 65535"),
        ({"key_shared_mode": KeySharedMode.Sticky, "sticky_ranges": [(5, 4)]}, "from 0 to 65535"),
        ({"key_shared_mode": KeySharedMode.Sticky, "sticky_ranges": [(9, 12), (0, 9)]}, "in common"),
        ({"key_shared_mode": KeySharedMode.Sticky, "sticky_ranges": [5]}, "two numbers"),
        ({"key_shared_mode": 7}, "two numbers"),
    ],
)
def test_policies_that_are_none(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Policy(**given)


def test_a_share_of_what_partitions_have_in_common() -> None:
    def share(most: int, across: int, partitions: int) -> int:
        options = ProducerOptions(limits=PublicationLimits(pending_messages=most), pending_across=across)
        return options.over(partitions).limits.pending_messages

    assert share(1_000, 50_000, 0) == share(1_000, 50_000, 4) == 1_000
    assert share(1_000, 400, 4) == 100 and share(1_000, 400, 0) == 1_000
    assert share(1_000, 3, 4) == 1, "one each, if there are more partitions"
    assert share(1_000, 0, 4) == 1_000 and share(0, 400, 4) == 0, "0 is no bound"


def test_what_clients_are_given() -> None:
    async def story(stage: Stage) -> None:
        client: Client = stage.client
        await stage.partitioned("persistent://public/default/p", 4)
        async with await client.create_producer(
            "p", max_pending_messages_across_partitions=8, batching_enabled=True,
            batching_type=magnetar.BatchingType.KeyBased,
        ) as producer:  # fmt: skip
            limits = producer.options.limits
            assert (limits.pending_messages, limits.batch_by_key) == (2, True)
        with pytest.raises(ArgumentError, match="max_pending_messages_across_partitions"):
            await client.create_producer("p", max_pending_messages_across_partitions=-1)
        for wrong in ({"max_pending_messages_across_partitions": None}, {"batching_type": 7}):
            with pytest.raises(ArgumentError):
                await client.create_producer("p", **wrong)
        policy = Policy(KeySharedMode.Sticky, False, [(0, 65_535)])
        key_shared = magnetar.ConsumerType.KeyShared
        async with await client.subscribe("p", "s", key_shared, key_shared_policy=policy) as consumer:
            assert consumer.options.key_shared == policy.policy()
        for bad in ({"key_shared_policy": "Sticky"}, {"regex_subscription_mode": None}):
            with pytest.raises(ArgumentError):
                await client.subscribe("p", "s", key_shared, **bad)
        assert magnetar.RegexSubscriptionMode.AllTopics == "AllTopics"

    play(story)
