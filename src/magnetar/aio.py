"""The asyncio client: ``async with magnetar.aio.Client("pulsar://localhost:6650") as client: …`` (docs/client.md)."""

from __future__ import annotations

from enum import IntEnum

from magnetar.client.aio.authentication import (
    Authentication,
    AuthenticationAthenz,
    AuthenticationBasic,
    AuthenticationOauth2,
    AuthenticationTLS,
    AuthenticationToken,
)
from magnetar.client.aio.client import Client
from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.reader import Reader
from magnetar.client.aio.handlers.outcome import Reject, RejectedMessageError, Retry, RunReport
from magnetar.client.aio.interceptors.consumer_interceptor import ConsumerInterceptor
from magnetar.client.aio.interceptors.producer_interceptor import ProducerInterceptor
from magnetar.client.aio.interceptors.trace_spans import TracingConsumerInterceptor, TracingProducerInterceptor
from magnetar.client.aio.producers.producer import Producer
from magnetar.client.aio.services.auto_cluster_failover import AutoClusterFailover
from magnetar.client.aio.services.service_info import ServiceInfo
from magnetar.client.aio.services.service_info_provider import ServiceInfoProvider
from magnetar.client.aio.statistics.handle_stats import ConsumptionStatistics, ProducerStatistics
from magnetar.client.aio.topics.receipt import Receipt
from magnetar.client.aio.views.table_view import TableView
from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction, ProducerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import CryptoKeyReader, EncryptionKeyInfo
from magnetar.client.encryption.encryption_context import EncryptionContext
from magnetar.client.encryption.encryption_context import WrappedKey as EncryptionKey
from magnetar.client.errors import (
    AlreadyClosedError,
    ClientError,
    ClientTimeoutError,
    ConnectionLostError,
    CryptoError,
    MessageTooLargeError,
    NotBuiltError,
    QueueFullError,
    RefusedError,
    TlsError,
)
from magnetar.client.login import ClientLogin
from magnetar.client.machines.batch_receive_policy import ConsumerBatchReceivePolicy
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.batching_type import BatchingType
from magnetar.client.machines.outgoing.partition_router import HashingScheme, PartitionsRoutingMode
from magnetar.client.machines.redelivery.dead_letter_policy import ConsumerDeadLetterPolicy
from magnetar.client.machines.redelivery.redelivery_backoff import MultiplierRedeliveryBackoff, RedeliveryBackoff
from magnetar.client.machines.subscription_choices import ConsumerKeySharedPolicy, RegexSubscriptionMode
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
    "Authentication",
    "AuthenticationAthenz",
    "AuthenticationBasic",
    "AuthenticationOauth2",
    "AuthenticationTLS",
    "AuthenticationToken",
    "AutoClusterFailover",
    "BatchingType",
    "Client",
    "ClientError",
    "ClientLogin",
    "ClientTimeoutError",
    "ClientTransaction",
    "CompressionType",
    "ConnectionLostError",
    "Consumer",
    "ConsumerBatchReceivePolicy",
    "ConsumerCryptoFailureAction",
    "ConsumerDeadLetterPolicy",
    "ConsumerInterceptor",
    "ConsumerKeySharedPolicy",
    "ConsumerType",
    "ConsumptionStatistics",
    "CryptoError",
    "CryptoKeyReader",
    "EncryptionContext",
    "EncryptionKey",
    "EncryptionKeyInfo",
    "HashingScheme",
    "InitialPosition",
    "KeySharedMeta",
    "KeySharedMode",
    "Message",
    "MessageId",
    "MessageTooLargeError",
    "MultiplierRedeliveryBackoff",
    "NotBuiltError",
    "PartitionsRoutingMode",
    "Producer",
    "ProducerAccessMode",
    "ProducerCryptoFailureAction",
    "ProducerInterceptor",
    "ProducerStatistics",
    "QueueFullError",
    "Reader",
    "Receipt",
    "RedeliveryBackoff",
    "RefusedError",
    "RegexSubscriptionMode",
    "Reject",
    "RejectedMessageError",
    "Retry",
    "RunReport",
    "ServiceInfo",
    "ServiceInfoProvider",
    "TableView",
    "TlsError",
    "TracingConsumerInterceptor",
    "TracingProducerInterceptor",
]
