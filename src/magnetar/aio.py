"""The asyncio client: ``async with magnetar.aio.Client("pulsar://localhost:6650") as client: …`` (docs/client.md)."""

from __future__ import annotations

from enum import IntEnum

from magnetar.client.aio.client import Client
from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.consumer import Consumer
from magnetar.client.aio.producer import Producer
from magnetar.client.aio.reader import Reader
from magnetar.client.errors import (
    AlreadyClosedError,
    ClientError,
    ClientTimeoutError,
    ConnectionLostError,
    MessageTooLargeError,
    NotBuiltError,
    QueueFullError,
    RefusedError,
    TlsError,
)
from magnetar.client.login import ClientLogin
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.partition_router import HashingScheme, PartitionsRoutingMode
from magnetar.model.subscription_types import KeySharedMeta, KeySharedMode
from magnetar.protocol.commands import InitialPosition, ProducerAccessMode


class ConsumerType(IntEnum):
    """The types of subscriptions, with the names of the official Python client."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    KeyShared = 3


CompressionType = IntEnum("CompressionType", {"NONE": 0, "LZ4": 1, "ZLib": 2, "ZSTD": 3, "SNAPPY": 4})
"""How payloads are compressed, with the names of the official Python client."""

__all__ = [
    "AlreadyClosedError",
    "Client",
    "ClientError",
    "ClientLogin",
    "ClientTimeoutError",
    "ClientTransaction",
    "CompressionType",
    "ConnectionLostError",
    "Consumer",
    "ConsumerType",
    "HashingScheme",
    "InitialPosition",
    "KeySharedMeta",
    "KeySharedMode",
    "Message",
    "MessageId",
    "MessageTooLargeError",
    "NotBuiltError",
    "PartitionsRoutingMode",
    "Producer",
    "ProducerAccessMode",
    "QueueFullError",
    "Reader",
    "RefusedError",
    "TlsError",
]
