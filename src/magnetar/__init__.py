"""magnetar: Apache Pulsar's messaging in Python, with its data pipelines on Spark.

Reading order for a newcomer who follows one message (docs/architecture.md): ``protocol``, ``broker``, ``storage``. They
stand on ``model``, ``config``, ``runtime``, ``schema_definitions`` and ``metadata``; ``security`` finds out who speaks,
``authorization`` what they may do; ``compaction`` and ``transactions`` are formats that the broker and the jobs share,
``offload`` keeps old ledgers elsewhere. ``admin`` is REST, ``admin_api`` what it says, ``telemetry`` sends what it
counts elsewhere, ``app`` and ``cli`` are the programs, ``contexts`` finds their broker, ``testing`` is the simulator.
``aio`` is the native client for asyncio (``asyncio`` is another name for it), ``exceptions`` its errors, ``schema`` its
values by schema, ``admin_client`` that of REST, ``compiled_build`` says which build runs. On Spark: ``client`` and
``columnar`` below ``spark``; ``lakehouse``, ``pipelines`` and ``jobs`` above it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

_HOMES: Final = {
    "magnetar.admin_client.client": ("Admin", "AsyncAdmin"),
    "magnetar.aio": (
        "Authentication", "AuthenticationAthenz", "AuthenticationBasic", "AuthenticationOauth2",
        "AuthenticationTLS", "AuthenticationToken", "BatchingType", "AutoClusterFailover", "ClientLogin",
        "CompressionType", "ConsumerBatchReceivePolicy", "ConsumerCryptoFailureAction",
        "ConsumerDeadLetterPolicy", "ConsumerInterceptor", "ConsumerKeySharedPolicy", "ConsumptionStatistics",
        "ConsumerType", "CryptoError", "CryptoKeyReader", "EncryptionContext", "EncryptionKey",
        "EncryptionKeyInfo", "HashingScheme", "InitialPosition", "KeySharedMeta", "KeySharedMode", "Message",
        "MessageId", "MultiplierRedeliveryBackoff", "PartitionsRoutingMode", "ProducerAccessMode",
        "ProducerCryptoFailureAction", "ProducerInterceptor", "ProducerStatistics", "Receipt",
        "RedeliveryBackoff", "RegexSubscriptionMode", "Reject", "RejectedMessageError", "Retry", "RunReport",
        "ServiceInfo", "ServiceInfoProvider", "TracingConsumerInterceptor", "TracingProducerInterceptor",
    ),
    "magnetar.exceptions": (
        "AlreadyClosed", "AlreadyClosedError", "ArgumentError", "AuthenticationError", "AuthorizationError",
        "BlockedLoopError", "BrokerMetadataError", "BrokerPersistenceError", "ChecksumError", "ClientError",
        "ClientTimeoutError", "ConnectError", "ConnectionLostError", "ConsumerAssignError", "ConsumerBusy",
        "ConsumerNotFound", "ConsumerNotInitialized", "CumulativeAcknowledgementNotAllowedError",
        "ErrorGettingAuthenticationData", "ForeignLoopError", "ForkedClientError", "IncompatibleSchema", "Interrupted",
        "InvalidConfiguration", "InvalidMessage", "InvalidTopicName", "InvalidTxnStatusError", "InvalidUrl",
        "LookupError", "MemoryBufferIsFull", "MemoryFullError", "MessageTooBig", "MessageTooLargeError",
        "NotAllowedError", "NotBuiltError", "NotConnected",
        "OperationNotSupported", "ProducerBlockedQuotaExceededError", "ProducerBlockedQuotaExceededException",
        "ProducerBusy", "ProducerFenced", "ProducerNotInitialized", "ProducerQueueIsFull", "PulsarException",
        "QueueFullError", "ReadError", "RefusedError", "ServiceUnitNotReady", "SubscriptionNotFound", "Timeout",
        "TlsError", "TooManyLookupRequestException", "TopicNotFound", "TopicTerminated", "TransactionConflict",
        "TransactionCoordinatorNotFoundError", "TransactionNotFound", "UnknownError", "UnsupportedVersionError",
    ),
    "magnetar.client.blocking.loggers": ("ConsoleLogger", "FileLogger", "LoggerLevel"),
    "magnetar.client.refusals": ("Result",),
    "magnetar.client.blocking.client": ("Client",),
    "magnetar.client.blocking.consumer": ("Consumer",),
    "magnetar.client.blocking.producer": ("Producer",),
    "magnetar.client.blocking.reader": ("Reader",),
    "magnetar.client.blocking.table_view": ("TableView",),
    "magnetar.client.blocking.transaction": ("ClientTransaction",),
}  # fmt: skip
"""Public names by the module that has them, which is imported when one of them is asked for; typed in __init__.pyi."""
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

_MODULES: Final = ("aio", "asyncio", "exceptions", "schema")
"""Public modules that need no import statement of their own, as with the official client: ``magnetar.schema.…``."""

__all__ = ["__version__", *_HOME_OF]

__version__ = "0.1.0"
"""The version of magnetar; pyproject.toml, REST, CONNECTED, /metrics and ``--version`` take it from here."""


def __getattr__(name: str) -> object:
    """Import what is asked for: a broker needs no client, and a program with one client does not pay for the others."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # no import statement: what is below the client reads the version here, and may not know the client
    found: object = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names, whether they were imported yet or not."""
    return sorted({*globals(), *__all__})
