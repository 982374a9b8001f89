"""Transactions of the asyncio client where they cannot be had, or belong to somebody else."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.errors import RefusedError
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from tests.support.scripted_broker import Link, scripted_broker


def test_a_cluster_without_transactions_names_their_setting() -> None:
    """The topic of the coordinators is Pulsar's own, and nothing that who asks could look at."""

    def script(link: Link) -> None:
        link.greet()
        asked = link.expect(c.CommandPartitionedTopicMetadata)
        answer, failed = c.CommandPartitionedTopicMetadataResponse, c.MetadataType.Failed
        link.send(answer(asked.request_id, response=failed, error=ServerError.TopicNotFound, message="no such topic"))
        link.until_left()

    async def begin(url: str) -> None:
        async with Client(url, operation_timeout_seconds=10) as client:
            await client.new_transaction()

    with (
        scripted_broker(script) as url,
        pytest.raises(RefusedError, match="transactionCoordinatorEnabled=true") as info,
    ):
        asyncio.run(begin(url))
    assert info.value.code is ServerError.TransactionCoordinatorNotFound and "coordinator_assign" not in str(info.value)
