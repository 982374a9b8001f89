"""The errors of the client under the official Python client's names: ``except magnetar.exceptions.Timeout``.

One class for each code with which a broker refuses, all of them subclasses of RefusedError, and the errors that the
client finds out itself, some of which have two names. ``PulsarException`` is the root of all. Names of the official
client for which there is no occasion here (`NEVER_RAISED`) exist, so that programs which catch them run.
"""

from __future__ import annotations

from typing import Final

from magnetar.client.errors import (
    AlreadyClosedError,
    ArgumentError,
    BlockedLoopError,
    ClientError,
    ClientTimeoutError,
    ConnectionLostError,
    CryptoError,
    CumulativeAcknowledgementNotAllowedError,
    ForeignLoopError,
    ForkedClientError,
    MemoryFullError,
    MessageTooLargeError,
    NotBuiltError,
    OperationNotSupported,
    QueueFullError,
    RefusedError,
    TlsError,
    refusal,
)
from magnetar.model.errors import MagnetarError, ServerError

PulsarException = MagnetarError
Timeout = ClientTimeoutError
ConnectError = ConnectionLostError
NotConnected = ConnectionLostError
ReadError = ConnectionLostError
AlreadyClosed = AlreadyClosedError
ProducerQueueIsFull = QueueFullError
MemoryBufferIsFull = MemoryFullError
MessageTooBig = MessageTooLargeError
InvalidConfiguration = ArgumentError
InvalidMessage = ArgumentError
InvalidUrl = ArgumentError

UnknownError = refusal(ServerError.UnknownError)
BrokerMetadataError = refusal(ServerError.MetadataError)
BrokerPersistenceError = refusal(ServerError.PersistenceError)
AuthenticationError = refusal(ServerError.AuthenticationError)
AuthorizationError = refusal(ServerError.AuthorizationError)
ConsumerBusy = refusal(ServerError.ConsumerBusy)
ServiceUnitNotReady = refusal(ServerError.ServiceNotReady)
ProducerBlockedQuotaExceededError = refusal(ServerError.ProducerBlockedQuotaExceededError)
ProducerBlockedQuotaExceededException = refusal(ServerError.ProducerBlockedQuotaExceededException)
ChecksumError = refusal(ServerError.ChecksumError)
UnsupportedVersionError = refusal(ServerError.UnsupportedVersionError)
TopicNotFound = refusal(ServerError.TopicNotFound)
SubscriptionNotFound = refusal(ServerError.SubscriptionNotFound)
ConsumerNotFound = refusal(ServerError.ConsumerNotFound)
TooManyLookupRequestException = refusal(ServerError.TooManyRequests)
TopicTerminated = refusal(ServerError.TopicTerminatedError)
ProducerBusy = refusal(ServerError.ProducerBusy)
InvalidTopicName = refusal(ServerError.InvalidTopicName)
IncompatibleSchema = refusal(ServerError.IncompatibleSchema)
ConsumerAssignError = refusal(ServerError.ConsumerAssignError)
TransactionCoordinatorNotFoundError = refusal(ServerError.TransactionCoordinatorNotFound)
InvalidTxnStatusError = refusal(ServerError.InvalidTxnStatus)
NotAllowedError = refusal(ServerError.NotAllowedError)
TransactionConflict = refusal(ServerError.TransactionConflict)
TransactionNotFound = refusal(ServerError.TransactionNotFound)
ProducerFenced = refusal(ServerError.ProducerFenced)

NEVER_RAISED: Final = tuple(
    type(name, (ClientError,), {"__doc__": "What the official client has and this one has no occasion for."})
    for name in (
        "LookupError", "ErrorGettingAuthenticationData", "ConsumerNotInitialized", "ProducerNotInitialized",
        "Interrupted",
    )
)  # fmt: skip
LookupError, ErrorGettingAuthenticationData, ConsumerNotInitialized, ProducerNotInitialized, Interrupted = NEVER_RAISED

__all__ = [
    "AlreadyClosed",
    "AlreadyClosedError",
    "ArgumentError",
    "AuthenticationError",
    "AuthorizationError",
    "BlockedLoopError",
    "BrokerMetadataError",
    "BrokerPersistenceError",
    "ChecksumError",
    "ClientError",
    "ClientTimeoutError",
    "ConnectError",
    "ConnectionLostError",
    "ConsumerAssignError",
    "ConsumerBusy",
    "ConsumerNotFound",
    "ConsumerNotInitialized",
    "CryptoError",
    "CumulativeAcknowledgementNotAllowedError",
    "ErrorGettingAuthenticationData",
    "ForeignLoopError",
    "ForkedClientError",
    "IncompatibleSchema",
    "Interrupted",
    "InvalidConfiguration",
    "InvalidMessage",
    "InvalidTopicName",
    "InvalidTxnStatusError",
    "InvalidUrl",
    "LookupError",
    "MemoryBufferIsFull",
    "MemoryFullError",
    "MessageTooBig",
    "MessageTooLargeError",
    "NotAllowedError",
    "NotBuiltError",
    "NotConnected",
    "OperationNotSupported",
    "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException",
    "ProducerBusy",
    "ProducerFenced",
    "ProducerNotInitialized",
    "ProducerQueueIsFull",
    "PulsarException",
    "QueueFullError",
    "ReadError",
    "RefusedError",
    "ServiceUnitNotReady",
    "SubscriptionNotFound",
    "Timeout",
    "TlsError",
    "TooManyLookupRequestException",
    "TopicNotFound",
    "TopicTerminated",
    "TransactionConflict",
    "TransactionCoordinatorNotFoundError",
    "TransactionNotFound",
    "UnknownError",
    "UnsupportedVersionError",
]
