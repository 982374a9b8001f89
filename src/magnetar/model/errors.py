"""One tree of errors. Each class knows its wire code (ServerError, rule 1.3.20) and its HTTP status.

Raise the most exact class with a message that names what, where and the next step; the connection and the REST
server turn it into an answer, nothing else inspects it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ServerError(IntEnum):
    """Wire codes of errors, with Pulsar's numbers and names."""

    UnknownError = 0
    MetadataError = 1
    PersistenceError = 2
    AuthenticationError = 3
    AuthorizationError = 4
    ConsumerBusy = 5
    ServiceNotReady = 6
    ProducerBlockedQuotaExceededError = 7
    ProducerBlockedQuotaExceededException = 8
    ChecksumError = 9
    UnsupportedVersionError = 10
    TopicNotFound = 11
    SubscriptionNotFound = 12
    ConsumerNotFound = 13
    TooManyRequests = 14
    TopicTerminatedError = 15
    ProducerBusy = 16
    InvalidTopicName = 17
    IncompatibleSchema = 18
    ConsumerAssignError = 19
    TransactionCoordinatorNotFound = 20
    InvalidTxnStatus = 21
    NotAllowedError = 22
    TransactionConflict = 23
    TransactionNotFound = 24
    ProducerFenced = 25


class MagnetarError(Exception):
    """Root of everything this project raises on purpose."""

    code: ClassVar[ServerError] = ServerError.UnknownError
    status: ClassVar[int] = 500


class ProtocolError(MagnetarError):
    """The peer broke the wire protocol; its connection is closed, no other connection is affected."""


class InvalidTopicNameError(MagnetarError):
    code = ServerError.InvalidTopicName
    status = 412


class UnsupportedPatternError(InvalidTopicNameError):
    """A topic pattern that another engine may well have. On the wire a code that clients do not repeat: they poll."""

    code = ServerError.NotAllowedError


class InvalidNamespaceNameError(MagnetarError):
    """An invalid namespace name; on the wire it closes the connection (rule 1.3.19)."""

    status = 412


class TopicNotFoundError(MagnetarError):
    code = ServerError.TopicNotFound
    status = 404


class SubscriptionNotFoundError(MagnetarError):
    code = ServerError.SubscriptionNotFound
    status = 404


class MetadataError(MagnetarError):
    code = ServerError.MetadataError
    status = 500


class PersistenceError(MagnetarError):
    """The disk refused: nothing was acknowledged, try again when the cause in the text is gone."""

    code = ServerError.PersistenceError


class UnreadableError(PersistenceError):
    """Entries are damaged or missing on disk: reading them again brings nothing before they are repaired."""

    def __init__(self, text: str, stop: int) -> None:
        super().__init__(text)
        self.stop = stop
        """Ordinal after the last one of which that is known."""


class ServiceNotReadyError(MagnetarError):
    code = ServerError.ServiceNotReady
    status = 503


class ProducerBusyError(MagnetarError):
    code = ServerError.ProducerBusy
    status = 412


class QuotaExceededHoldError(MagnetarError):
    """Backlog quota, policy producer_request_hold: the client waits and tries again."""

    code = ServerError.ProducerBlockedQuotaExceededError
    status = 412


class QuotaExceededError(MagnetarError):
    """Backlog quota, policy producer_exception: the client fails what it has under way."""

    code = ServerError.ProducerBlockedQuotaExceededException
    status = 412


class ProducerFencedError(MagnetarError):
    code = ServerError.ProducerFenced
    status = 412


class ConsumerBusyError(MagnetarError):
    code = ServerError.ConsumerBusy
    status = 412


class ConsumerAssignError(MagnetarError):
    code = ServerError.ConsumerAssignError
    status = 412


class TopicTerminatedError(MagnetarError):
    code = ServerError.TopicTerminatedError
    status = 412


class NotAllowedError(MagnetarError):
    code = ServerError.NotAllowedError
    status = 405


class TransactionCoordinatorNotFoundError(MagnetarError):
    code = ServerError.TransactionCoordinatorNotFound
    status = 404


class TransactionNotFoundError(MagnetarError):
    code = ServerError.TransactionNotFound
    status = 404


class TooManyTransactionsError(MagnetarError):
    code = ServerError.TooManyRequests
    status = 429


class TooManyLookupsError(MagnetarError):
    code = ServerError.TooManyRequests
    status = 503


class ForeignTransactionError(TransactionNotFoundError):
    """The transaction belongs to another role (rule 9.7)."""


class InvalidTxnStatusError(MagnetarError):
    code = ServerError.InvalidTxnStatus
    status = 409


class TransactionConflictError(MagnetarError):
    code = ServerError.TransactionConflict
    status = 409


class IncompatibleSchemaError(MagnetarError):
    code = ServerError.IncompatibleSchema
    status = 409


class InvalidSchemaDataError(MagnetarError):
    """A schema that its own type cannot read."""

    code = ServerError.IncompatibleSchema
    status = 422


class ConflictError(MagnetarError):
    """REST only: the thing exists already."""

    status = 409


class SubscriptionExistsError(ConflictError):
    """REST only: the topic or partition has a subscription of that name."""

    def __init__(self) -> None:
        super().__init__("Subscription already exists for topic")


class NotFoundError(MagnetarError):
    """REST only: tenant, namespace or other resource is missing."""

    status = 404


class PreconditionFailedError(MagnetarError):
    """REST only: a condition of the request does not hold."""

    status = 412


class InvalidValueError(MagnetarError):
    """A setting, an argument or a REST body that cannot be accepted."""

    status = 400


class AuthenticationError(MagnetarError):
    """Credentials that do not count. The text is for the broker's log; clients hear the same whatever the reason."""

    code = ServerError.AuthenticationError
    status = 401


class ForbiddenError(MagnetarError):
    """REST only: the client is known, and may not do this."""

    code = ServerError.AuthorizationError
    status = 403


class AuthorizationRefusedError(MagnetarError):
    """The role may not do this; what HTTP answers with 403 (rule 12.8)."""

    code = ServerError.AuthorizationError
    status = 403


class NotAuthorizedError(AuthorizationRefusedError):
    """The same where Pulsar answers 401: clusters, tenants and operations on topics."""

    status = 401


class NotAcceptableError(MagnetarError):
    """REST only: a count or kind that makes no sense for this resource."""

    status = 406


class UnprocessableError(MagnetarError):
    """REST only: understood, but contradicts what exists (shrinking partitions)."""

    status = 422


class NotAvailableError(MagnetarError):
    """Known to Apache Pulsar, not built here yet; the text names what was asked for."""

    code = ServerError.NotAllowedError
    status = 501


class BadVersionError(ConflictError):
    """A conditional write found another version than expected; read again, decide again."""

    code = ServerError.MetadataError
