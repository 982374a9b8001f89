"""What the log says of questions about topics that are not there (rule 2.8)."""

from __future__ import annotations

import logging

import pytest

from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from tests.wire.bench import Wires, on_broker

OLD_NAME = "persistent://public/default/sub-RETRY"
WHY = f"Topic {OLD_NAME} not found, and it is not to be created"


@pytest.mark.parametrize("to_be_made", [False, True])
def test_a_missing_topic_is_a_warning_only_where_it_was_to_be_made(
    to_be_made: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A Java consumer with a retry topic asks for two that are not to be made; each left a warning without a reason."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        command = c.CommandPartitionedTopicMetadata(
            OLD_NAME, client.new_id(), metadata_auto_creation_enabled=to_be_made
        )
        answer = await client.request(command, c.CommandPartitionedTopicMetadataResponse)
        assert (answer.error, answer.message) == (ServerError.TopicNotFound, WHY)

    with caplog.at_level(logging.DEBUG):
        on_broker(test, allowAutoTopicCreation=not to_be_made)
    said = [record for record in caplog.records if "PARTITIONED_METADATA" in record.getMessage()]
    assert [record.levelname for record in said] == ["WARNING" if to_be_made else "DEBUG"]
    assert said[0].getMessage().endswith(WHY)


def test_a_name_with_the_suffix_of_partitions_in_its_middle_is_made_partitioned() -> None:
    """Apache Pulsar refuses such a name over REST only; a client that looked it up was refused here."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        name = "persistent://public/default/old-partition-0-dd"
        command = c.CommandPartitionedTopicMetadata(name, client.new_id(), metadata_auto_creation_enabled=True)
        answer = await client.request(command, c.CommandPartitionedTopicMetadataResponse)
        assert (answer.error, answer.partitions) == (None, 2)
        await client.producer(name + "-partition-1")

    on_broker(test, allowAutoTopicCreationType="partitioned", defaultNumPartitions=2)


def test_a_name_with_a_cluster_hears_that_such_names_are_not_served() -> None:
    """The v1 form, which Apache Pulsar 4.0.8 still serves (probe names-with-a-cluster): no client has to guess why."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        name = "persistent://public/standalone/ns/t"
        asked = c.CommandPartitionedTopicMetadata(name, client.new_id())
        counted = await client.request(asked, c.CommandPartitionedTopicMetadataResponse)
        found = await client.request(c.CommandLookupTopic(name, client.new_id()), c.CommandLookupTopicResponse)
        for answer in (counted, found):
            assert answer.error is ServerError.TopicNotFound
            assert answer.message is not None
            assert answer.message.startswith("Namespace public/standalone/ns not found: names of the v1 form")

    on_broker(test)
