"""Large messages to topics that store nothing, in virtual time against a whole broker."""

from __future__ import annotations

import pytest

from magnetar.client.errors import MessageTooLargeError
from tests.support.delivery_stage import S, Stage, nothing, play

TOPIC = "non-persistent://public/default/t"


def test_nothing_is_chunked_on_a_non_persistent_topic() -> None:
    """Half of a message would be dropped where a consumer has no room for all of it (rule 3.6.1)."""

    async def story(stage: Stage) -> None:
        consumer = await stage.client.subscribe(TOPIC, S)
        async with await stage.client.create_producer(TOPIC, chunking_enabled=True) as producer:
            with pytest.raises(MessageTooLargeError, match="nothing is chunked on a non-persistent topic"):
                await producer.send(bytes(120_000))
            await producer.send(b"a")
        assert (await consumer.receive(1_000)).data() == b"a"
        await nothing(consumer, 5)

    play(story)
