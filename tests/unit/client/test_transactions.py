"""Transactions of the asyncio client where they cannot be had, or belong to somebody else."""

from __future__ import annotations

import asyncio

import pytest

from magnetar import aio
from magnetar.client.aio.client import Client
from magnetar.client.errors import AlreadyClosedError, RefusedError
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing import PulsarBroker
from tests.sim.world import T
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


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_end_waits_for_what_is_only_being_prepared(end: str) -> None:
    """A message or acknowledgement whose topic the coordinator is just told of was begun before: it counts with a
    commit, and does not reach the broker after an abort."""

    async def main(broker: PulsarBroker) -> None:
        async with asyncio.timeout(30), aio.Client(broker.service_url) as client:
            producer = await client.create_producer(T)
            consumer = await client.subscribe(T, "s")
            await producer.send(b"before")
            before = await consumer.receive(5_000)
            transaction = await client.new_transaction()
            begun = [
                asyncio.ensure_future(producer.send(b"within", txn=transaction)),
                asyncio.ensure_future(consumer.acknowledge(before, txn=transaction)),
            ]
            await asyncio.sleep(0)
            await getattr(transaction, end)()
            errors = await asyncio.gather(*begun, return_exceptions=True)
            if end == "commit":
                assert not [one for one in errors if isinstance(one, BaseException)]
                assert (await consumer.receive(5_000)).data() == b"within"
            else:
                assert all(isinstance(one, AlreadyClosedError) for one in errors)
                assert (await consumer.get_last_message_id()).entry_id() == before.message_id().entry_id()

    with PulsarBroker(seed=1, settings={"transactionCoordinatorEnabled": "true"}) as broker:
        asyncio.run(main(broker))


def test_a_coordinator_that_has_moved_is_looked_up_again() -> None:
    """The connection to the broker where it was lives on: it was asked there for ever (rule 9.6)."""

    def connects(link: Link) -> None:
        link.look_up()
        asked = link.expect(c.CommandTcClientConnectRequest)
        link.send(c.CommandTcClientConnectResponse(asked.request_id))

    def gone(link: Link, asked: c.CommandNewTxn | c.CommandEndTxn) -> None:
        answer = c.CommandNewTxnResponse if isinstance(asked, c.CommandNewTxn) else c.CommandEndTxnResponse
        code = ServerError.TransactionCoordinatorNotFound
        link.send(answer(asked.request_id, error=code, message="Transaction coordinator with id 0 not found!"))

    def begins(link: Link, least: int) -> None:
        asked = link.expect(c.CommandNewTxn)
        link.send(c.CommandNewTxnResponse(asked.request_id, c.TxnId(0, least)))

    def script(link: Link) -> None:
        link.greet()
        link.partitions(1)
        connects(link)
        begins(link, 1)
        gone(link, link.expect(c.CommandNewTxn))
        connects(link)
        begins(link, 2)
        gone(link, link.expect(c.CommandEndTxn))
        connects(link)
        ended = link.expect(c.CommandEndTxn)
        link.send(c.CommandEndTxnResponse(ended.request_id))
        gone(link, link.expect(c.CommandNewTxn))
        connects(link)
        gone(link, link.expect(c.CommandNewTxn))
        link.until_left()

    async def all_of_it(url: str) -> None:
        async with asyncio.timeout(30), Client(url, operation_timeout_seconds=10) as client:
            assert (await client.new_transaction()).txn_id == c.TxnId(0, 1)
            second = await client.new_transaction()
            assert second.txn_id == c.TxnId(0, 2)
            await second.abort()
            with pytest.raises(RefusedError, match="id 0 not found"):
                await client.new_transaction()

    with scripted_broker(script) as url:
        asyncio.run(all_of_it(url))
