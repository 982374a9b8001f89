"""A compacted view counts messages as the log does: consumers pay for what an entry holds, compacted or not."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.model.subscription_types import SubType
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic, ValueConnection


def batch(*keys: str) -> bytes:
    messages = [(SingleMessageMetadata(partition_key=key), b"x") for key in keys]
    return build_entry(EntryMetadata("p", 0, 1000, num_messages_in_batch=len(keys)), join_batch(messages))


@pytest.mark.parametrize(
    "batches",
    [[], [("a", "b", "c")], [("a", "b"), ("k1", "k2", "k3", "d")]],
    ids=["single messages", "one batch", "batches"],
)
@pytest.mark.parametrize("again", [False, True])
def test_permits_buy_as_much_of_a_compacted_view_as_of_the_log(batches: list[tuple[str, ...]], again: bool) -> None:
    async def main() -> None:
        place = LoadedTopic()
        for i in range(5):
            place.append(f"k{i}", "old")
        for i in range(3):
            place.append(f"k{i + 3}", "new")
        for keys in batches:
            place.topic.log.append(batch(*keys), len(keys), None)
        # k3 and k4 came twice, and what a batch brings again is gone before it
        singles = [0, 1, 2, 5, 6, 7]
        replaced = {key for keys in batches for key in keys}
        singles = [o for o in singles if f"k{o if o < 5 else o - 2}" not in replaced]
        await place.durable()
        await place.compact()
        if again:
            await place.compact()
        connection = ValueConnection()
        found = place.topic.subscription("r", durable=False, ordinal=lambda: 0, properties={}, done=lambda: None)
        place.topic.read_by(found, compacted=True)
        consumer = found.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
        found.flow(consumer, 1000)
        await asyncio.sleep(1)
        assert len(connection.values) == len(singles) + len(batches)
        assert 1000 - consumer.state.permits == len(singles) + sum(map(len, batches))
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())
