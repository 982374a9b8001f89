"""Where a compacted topic ends for readers and table views, in virtual time against a whole broker.

A broker, Apache Pulsar's too, names no batch index for a batch of one at the end of what is compacted (rule 5.9.12),
while the message itself has the index 0.
"""

from __future__ import annotations

import pytest

from magnetar.client.machines.message_id import MessageId
from tests.sim.world import T
from tests.support.compacted_topic import compact
from tests.support.delivery_stage import Stage, play


async def _compacted(stage: Stage, *, batch: bool) -> list[MessageId]:
    async with await stage.client.create_producer(T, batching_enabled=batch) as producer:
        sent = [await producer.send(key.encode(), partition_key=key) for key in "ab"]
    topic = stage.world.machine.broker.service.topics[T]
    await compact(topic)
    return sent


@pytest.mark.parametrize("batch", [True, False], ids=["batches of one", "no batches"])
def test_a_reader_and_a_view_come_to_the_end_of_a_compacted_topic(batch: bool) -> None:
    async def story(stage: Stage) -> None:
        await _compacted(stage, batch=batch)
        reader = await stage.client.create_reader(T, MessageId.earliest, is_read_compacted=True)
        began, found = stage.now, []
        while await reader.has_message_available():
            found.append((await reader.read_next(1_000)).data())
        assert found == [b"a", b"b"] and stage.now - began < 5
        view = await stage.client.create_table_view(T)
        await view.refresh()
        assert view.snapshot() == {"a": b"a", "b": b"b"} and stage.now - began < 5
        async with await stage.client.create_producer(T, batching_enabled=batch) as producer:
            await producer.send(b"c", partition_key="c")
        assert await reader.has_message_available() and (await reader.read_next(1_000)).data() == b"c"
        assert not await reader.has_message_available() and stage.now - began < 5

    play(story)


@pytest.mark.parametrize("batch", [True, False], ids=["batches of one", "no batches"])
def test_a_reader_that_begins_at_the_last_message_of_a_compacted_topic(batch: bool) -> None:
    """It has the message if it includes it, and nothing if it goes after it."""

    async def story(stage: Stage) -> None:
        last = (await _compacted(stage, batch=batch))[-1]
        assert (last.batch_index() == 0) is batch
        for inclusive in (True, False):
            began = stage.now
            reader = await stage.client.create_reader(
                T, last, is_read_compacted=True, start_message_id_inclusive=inclusive
            )
            assert await reader.has_message_available() is inclusive
            if inclusive:
                assert (await reader.read_next(1_000)).data() == b"b"
                assert not await reader.has_message_available()
            assert stage.now - began < 5

    play(story)
