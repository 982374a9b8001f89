"""Transactions of a :class:`~magnetar.testing.rawclient.RawClient`: each step is one request and its answer."""

from __future__ import annotations

from typing import Any

from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, RawProducer


class RawTransaction:
    """An open one. Nothing is added by itself: what a client forgets is the test's affair."""

    def __init__(self, client: RawClient, txn: c.TxnId) -> None:
        self.client = client
        self.id = txn

    @classmethod
    async def begin(cls, client: RawClient, ttl_ms: int = 60_000, tc_id: int = 0) -> RawTransaction:
        """NEW_TXN. Raises RefusedError."""
        answer = _checked(
            await client.request(c.CommandNewTxn(client.new_id(), ttl_ms, tc_id), c.CommandNewTxnResponse)
        )
        assert answer.txn is not None
        return cls(client, answer.txn)

    async def add_partitions(self, *topics: str) -> None:
        """ADD_PARTITION_TO_TXN."""
        command = c.CommandAddPartitionToTxn(self.client.new_id(), self.id, topics)
        _checked(await self.client.request(command, c.CommandAddPartitionToTxnResponse))

    async def add_subscription(self, topic: str, subscription: str) -> None:
        """ADD_SUBSCRIPTION_TO_TXN."""
        names = (c.TxnSubscription(topic, subscription),)
        command = c.CommandAddSubscriptionToTxn(self.client.new_id(), self.id, names)
        _checked(await self.client.request(command, c.CommandAddSubscriptionToTxnResponse))

    async def publish(self, producer: RawProducer, payload: bytes) -> c.MessageIdData:
        """Send one message and wait for its receipt."""
        receipt = await producer.receipt(producer.send(payload, txn=self.id))
        assert receipt.message_id is not None
        return receipt.message_id

    async def ack(self, consumer: RawConsumer, *ids: c.MessageIdData, cumulative: bool = False) -> None:
        """Acknowledge and wait for the answer."""
        await consumer.ack(*ids, cumulative=cumulative, txn=self.id)

    async def commit(self) -> None:
        """END_TXN."""
        await self._end(c.TxnAction.COMMIT)

    async def abort(self) -> None:
        """END_TXN."""
        await self._end(c.TxnAction.ABORT)

    async def _end(self, action: c.TxnAction) -> None:
        command = c.CommandEndTxn(self.client.new_id(), self.id, action)
        _checked(await self.client.request(command, c.CommandEndTxnResponse))


def _checked(answer: Any) -> Any:
    if answer.error is not None:
        raise RawClientError(answer.error, answer.message or "")
    return answer
