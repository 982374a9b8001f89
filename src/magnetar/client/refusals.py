"""The official client's result codes, and what a broker can refuse with: for each of its codes the name, the meaning
and the next step.

`magnetar.client.errors` makes one class of each row, all of them subclasses of its RefusedError.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from magnetar.model.errors import ServerError


class Result(IntEnum):
    """How an operation went, with the names and numbers of the official client."""

    Ok = 0
    UnknownError = 1
    InvalidConfiguration = 2
    Timeout = 3
    LookupError = 4
    ConnectError = 5
    ReadError = 6
    AuthenticationError = 7
    AuthorizationError = 8
    ErrorGettingAuthenticationData = 9
    BrokerMetadataError = 10
    BrokerPersistenceError = 11
    ChecksumError = 12
    ConsumerBusy = 13
    NotConnected = 14
    AlreadyClosed = 15
    InvalidMessage = 16
    ConsumerNotInitialized = 17
    ProducerNotInitialized = 18
    ProducerBusy = 19
    TooManyLookupRequestException = 20
    InvalidTopicName = 21
    InvalidUrl = 22
    ServiceUnitNotReady = 23
    OperationNotSupported = 24
    ProducerBlockedQuotaExceededError = 25
    ProducerBlockedQuotaExceededException = 26
    ProducerQueueIsFull = 27
    MessageTooBig = 28
    TopicNotFound = 29
    SubscriptionNotFound = 30
    ConsumerNotFound = 31
    UnsupportedVersionError = 32
    TopicTerminated = 33
    CryptoError = 34
    IncompatibleSchema = 35
    ConsumerAssignError = 36
    CumulativeAcknowledgementNotAllowedError = 37
    TransactionCoordinatorNotFoundError = 38
    InvalidTxnStatusError = 39
    NotAllowedError = 40
    TransactionConflict = 41
    TransactionNotFound = 42
    ProducerFenced = 43
    MemoryBufferIsFull = 44
    Interrupted = 45


class RefusalCode(NamedTuple):
    """One code of a broker."""

    name: str
    """The class, as the official Python client names it."""
    meaning: str
    """What it means, for an error of which the broker gives only the code."""
    step: str
    """What to do about it."""


_AGAIN: Final = "try again in a moment; look at the broker's log if it goes on"

REFUSALS: Final = {
    ServerError.UnknownError: RefusalCode(
        "UnknownError", "the broker gives no reason", "look at the broker's log of this moment"
    ),
    ServerError.MetadataError: RefusalCode("BrokerMetadataError", "the broker's metadata store failed", _AGAIN),
    ServerError.PersistenceError: RefusalCode(
        "BrokerPersistenceError", "the broker could not store or read it", "look at the broker's disk and its log"
    ),
    ServerError.AuthenticationError: RefusalCode(
        "AuthenticationError", "the broker does not know this client", "check the credentials given as authentication"
    ),
    ServerError.AuthorizationError: RefusalCode(
        "AuthorizationError", "this client is not permitted to do this",
        "have it granted: pulsar-admin topics grant-permission",
    ),
    ServerError.ConsumerBusy: RefusalCode(
        "ConsumerBusy", "another consumer is connected to this subscription",
        "close that one, or subscribe as Shared, Failover or KeyShared",
    ),
    ServerError.ServiceNotReady: RefusalCode(
        "ServiceUnitNotReady", "the broker does not serve this topic yet", "try again in a moment"
    ),
    ServerError.ProducerBlockedQuotaExceededError: RefusalCode(
        "ProducerBlockedQuotaExceededError", "the backlog of the topic has reached its quota",
        "consume or clear the backlog, or raise the quota",
    ),
    ServerError.ProducerBlockedQuotaExceededException: RefusalCode(
        "ProducerBlockedQuotaExceededException", "the backlog of the topic has reached its quota",
        "consume or clear the backlog, or raise the quota",
    ),
    ServerError.ChecksumError: RefusalCode(
        "ChecksumError", "the message was damaged on its way", "it is sent again; look at the network if it comes back"
    ),
    ServerError.UnsupportedVersionError: RefusalCode(
        "UnsupportedVersionError", "the broker is too old for this", "update the broker, or leave the feature out"
    ),
    ServerError.TopicNotFound: RefusalCode(
        "TopicNotFound", "there is no such topic", "look at its name and namespace, or create it"
    ),
    ServerError.SubscriptionNotFound: RefusalCode(
        "SubscriptionNotFound", "there is no such subscription", "create it, or subscribe where topics may be created"
    ),
    ServerError.ConsumerNotFound: RefusalCode(
        "ConsumerNotFound", "the broker does not know this consumer any more", "subscribe again"
    ),
    ServerError.TooManyRequests: RefusalCode(
        "TooManyLookupRequestException", "the broker has too much to do", "try again in a moment"
    ),
    ServerError.TopicTerminatedError: RefusalCode(
        "TopicTerminated", "the topic was terminated: nothing can be published to it any more", "publish to another one"
    ),
    ServerError.ProducerBusy: RefusalCode(
        "ProducerBusy", "a producer of this name is connected already",
        "close that one, or leave producer_name out",
    ),
    ServerError.InvalidTopicName: RefusalCode(
        "InvalidTopicName", "this cannot be the name of a topic", "write persistent://tenant/namespace/topic"
    ),
    ServerError.IncompatibleSchema: RefusalCode(
        "IncompatibleSchema", "the schema does not go with those that the topic has",
        "change the schema, or the namespace's compatibility strategy",
    ),
    ServerError.ConsumerAssignError: RefusalCode(
        "ConsumerAssignError", "the broker has no key range for this consumer", "check the sticky ranges of the others"
    ),
    ServerError.TransactionCoordinatorNotFound: RefusalCode(
        "TransactionCoordinatorNotFoundError", "there is no coordinator of transactions",
        "set transactionCoordinatorEnabled=true at the broker",
    ),
    ServerError.InvalidTxnStatus: RefusalCode(
        "InvalidTxnStatusError", "the transaction has ended, or its time is over", "begin another one"
    ),
    ServerError.NotAllowedError: RefusalCode(
        "NotAllowedError", "the broker does not allow this here", "look at the policies of the topic and namespace"
    ),
    ServerError.TransactionConflict: RefusalCode(
        "TransactionConflict", "another transaction has acknowledged this message", "abort this transaction"
    ),
    ServerError.TransactionNotFound: RefusalCode(
        "TransactionNotFound", "the coordinator does not know this transaction", "begin another one"
    ),
    ServerError.ProducerFenced: RefusalCode(
        "ProducerFenced", "another producer has taken the topic for itself", "create a producer anew when it is gone"
    ),
}  # fmt: skip
