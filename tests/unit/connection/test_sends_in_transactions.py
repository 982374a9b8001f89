"""Which entries of a log belong to a transaction: those that its SENDs have written, and no others."""

from __future__ import annotations

import pytest

from magnetar.config.settings import Settings
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, payload_of
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import T, World
from tests.support.conversations import again, connected, talk

SETTINGS = Settings(transactionCoordinatorEnabled=True, brokerDeduplicationEnabled=True)


async def shown(client: RawClient) -> list[bytes]:
    """The payloads that the broker sends to the client's only consumer until it has answered something else."""
    await again(client)
    return [payload_of(message.entry) for message in client.heard(c.CommandMessage)]


@pytest.mark.parametrize("commit", [True, False])
def test_a_repetition_within_a_transaction_takes_no_later_entry_into_it(commit: bool) -> None:
    """Deduplication drops it, so the next entry is somebody else's and does not wait for the transaction's end."""

    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(T, "s")
        consumer.flow(100)
        producer = await client.producer(T, "p")
        await producer.receipt(producer.send(b"before", sequence_id=7))
        txn = await RawTransaction.begin(client)
        repeated = await producer.receipt(producer.send(b"repeated", sequence_id=7, txn=txn.id))
        assert repeated.message_id is not None
        assert repeated.message_id.entry in (-1, (1 << 64) - 1), "it was not recognized"
        other = await client.producer(T, "q")
        await other.publish(b"after")
        assert await shown(client) == [b"before", b"after"]
        await (txn.commit() if commit else txn.abort())
        await other.publish(b"last")
        assert await shown(client) == [b"before", b"after", b"last"]

    talk(simulation, SETTINGS)
