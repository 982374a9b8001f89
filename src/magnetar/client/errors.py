"""The errors of the client, of four kinds, because callers do four things about them; and those of its own queues.

* `ConnectionLostError`: connect again and go on; nothing is known to be wrong with the request. Of an address that
  answers with another protocol it is `WrongPortError`, which is tried again only where it was another broker's before.
* `RefusedError`: the broker refused; its code shows whether waiting helps (`retriable`).
* `ClientTimeoutError`: no answer came; the text says which broker was asked what and for how long.
* `TlsError`: certificates or settings have to be changed before it is tried again.
"""

from __future__ import annotations

from typing import ClassVar, Final

from magnetar.client.refusals import REFUSALS, RefusalCode, Result
from magnetar.model.errors import InvalidValueError, MagnetarError, ServerError

_RETRIABLE: Final = frozenset(
    {
        ServerError.ServiceNotReady,
        ServerError.MetadataError,
        ServerError.PersistenceError,
        ServerError.TooManyRequests,
        ServerError.ProducerBusy,
        ServerError.ConsumerBusy,
    }
)


class ClientError(MagnetarError):
    """The root of all errors that the client raises."""

    result: ClassVar[Result] = Result.UnknownError

    def error(self) -> Result:
        """Return the official client's code of it."""
        return self.result


class ConnectionLostError(ClientError):
    """The socket could not be opened, broke, or the broker closed it."""

    result = Result.ConnectError


class WrongPortError(ConnectionLostError):
    """What answers there speaks another protocol: no waiting helps, only another address."""


class TlsError(ClientError):
    """TLS with the broker was not agreed; no credential was sent."""

    result = Result.ConnectError


class ClientTimeoutError(ClientError):
    """No answer came in time."""

    result = Result.Timeout


class RefusedError(ClientError):
    """The broker answered with an error; each code has a subclass of its own, which is what is really raised.

    The subclasses have the official Python client's names and are found in `magnetar.exceptions`; ``code`` is the
    broker's.
    """

    def __new__(cls, _what: str, error: ServerError, *_: object, **__: object) -> RefusedError:
        """Make the subclass of the code."""
        return super().__new__(_CLASSES[error] if cls is RefusedError else cls)

    def __init__(
        self, what: str, error: ServerError, message: str | None, advice: str | None = None, host: str | None = None
    ) -> None:
        """``advice`` is the next step, if it is known better than the code says; ``host`` the broker that refused."""
        row = REFUSALS[error]
        where = "" if host is None else f" (broker at {host})"
        refused = f"{what}: {error.name}: {message or row.meaning}; "
        super().__init__(f"{refused}{advice or row.step}{where}")
        self.reason = refused + row.step
        """The text without advice about this client, for those in whose name it asked."""
        self.host = host
        self._given = (what, error, message, advice, host)

    def __reduce__(self) -> tuple[type[RefusedError], tuple[object, ...]]:
        return type(self), self._given

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.code in _RETRIABLE


def _refusal_class(code: ServerError, row: RefusalCode) -> type[RefusedError]:
    made = {
        "__doc__": f"The broker refused: {row.meaning}.", "__module__": "magnetar.exceptions",
        "code": code, "result": Result[row.name],
    }  # fmt: skip
    return type(row.name, (RefusedError,), made)


_CLASSES: Final = {code: _refusal_class(code, row) for code, row in REFUSALS.items()}


def refusal(error: ServerError) -> type[RefusedError]:
    """Return the class that is raised about a code."""
    return _CLASSES[error]


class MessageTooLargeError(ClientError):
    """A message is larger than the broker takes, and chunking is off."""

    result = Result.MessageTooBig

    def __init__(self, topic: str, size: int, limit: int, *, chunkable: bool = True) -> None:
        """``chunkable`` is false if chunks do not help: each has all properties and keys."""
        if not chunkable:
            step = "its properties and keys alone fill it, and they cannot be chunked: make them smaller"
        elif topic.startswith("non-persistent:"):
            step = "nothing is chunked on a non-persistent topic: make it smaller"
        else:
            step = "turn chunking on (without batching)"
        super().__init__(
            f"{topic}: a message of {size} bytes is larger than the {limit} the broker takes; {step}, or raise "
            "maxMessageSize of the broker"
        )
        self.size = size
        self.limit = limit


class UndeliverableError(ClientError):
    """A message that this consumer must neither deliver nor pass over; it stays unacknowledged."""

    def __init__(self, ledger: int, entry: int, why: str, topic: str) -> None:
        self.brief = f"message {ledger}:{entry} {why}"
        """The text without the topic."""
        self.place = ledger, entry
        self.topic = topic
        super().__init__(f"{self.brief}; it stays unacknowledged on {topic}")


class UnpackedTooLargeError(UndeliverableError):
    """A message that this consumer must not unpack, since it would be too large here; it stays unacknowledged."""

    def __init__(self, ledger: int, entry: int, size: int, limit: int, topic: str) -> None:
        super().__init__(ledger, entry, f"has {size} bytes unpacked, above {limit} taken here", topic)


class SealedMessageError(UndeliverableError):
    """An encrypted message that no key opens, at a consumer that must not pass it over; it stays unacknowledged."""

    def __init__(self, ledger: int, entry: int, topic: str) -> None:
        super().__init__(ledger, entry, "is encrypted, and cryptoFailureAction is neither CONSUME nor DISCARD", topic)


class CryptoError(ClientError):
    """A message cannot be encrypted: a public key cannot be read or is none."""

    result = Result.CryptoError


class QueueFullError(ClientError):
    """As many messages wait for their receipts as may; wait for some, or turn block_if_queue_full on."""

    result = Result.ProducerQueueIsFull


class MemoryFullError(QueueFullError):
    """As many bytes wait for their receipts as memory_limit_bytes of the client; wait for some, or raise it."""

    result = Result.MemoryBufferIsFull

    def __init__(self, topic: str, limit: int) -> None:
        super().__init__(
            f"{topic}: memory_limit_bytes {limit} of the client are used by messages that wait for their receipts; "
            "await some of them, raise memory_limit_bytes or turn block_if_queue_full on"
        )


class AlreadyClosedError(ClientError):
    """The client, producer, consumer or reader was closed."""

    result = Result.AlreadyClosed


class NotBuiltError(ClientError):
    """A feature of other clients that this one does not have; nothing was done."""


class BlockedLoopError(ClientError):
    """A call that waits was made on the loop thread of its own client, where it would wait for itself."""

    def __init__(self) -> None:
        super().__init__(
            "a call that waits was made in a callback, on the thread of the client itself, which could never answer; "
            "use send_async there, or hand the work to another thread"
        )


class ForkedClientError(ClientError):
    """The client belongs to the process that this one was forked from, and cannot be used here."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was made in another process, before a fork: its connections stay with that one. Make a client in "
            "this process, after the fork; closing this one is not needed and does nothing"
        )


class ArgumentError(ClientError, InvalidValueError, ValueError):
    """A call was given what it cannot take; nothing was done. It is a ValueError, as in the official client."""

    result = Result.InvalidMessage


class ForeignLoopError(ArgumentError):
    """An asyncio client was used on another event loop than the one it belongs to; nothing was done."""

    def __init__(self) -> None:
        super().__init__(
            "this asyncio client belongs to another event loop, of another asyncio.run or another thread: its "
            "connections stay with that one. Make a client on each loop, or hand the work to its own loop with "
            "asyncio.run_coroutine_threadsafe"
        )


class CumulativeAcknowledgementNotAllowedError(ArgumentError):
    """Messages of a Shared or Key_Shared subscription are acknowledged one by one."""

    result = Result.CumulativeAcknowledgementNotAllowedError


class OperationNotSupported(ArgumentError):
    """A call makes no sense for this handle, as an id without a topic for a consumer of several topics."""

    result = Result.OperationNotSupported


class SchemaError(ClientError):
    """A value does not fit its schema, or a payload cannot be read with it.

    Of a message that was received, ``topic``, ``message_id`` and ``schema_version`` say which; it is not acknowledged,
    and its bytes are in `Message.data`.
    """

    topic: str | None = None
    message_id: object = None
    schema_version: int | None = None


class ValueTypeError(SchemaError, TypeError):
    """A value is of another Python type than its schema is for."""


def result_of(error: Exception) -> Result:
    """Return the official client's code of an error."""
    if isinstance(error, ClientError):
        return error.error()
    return Result.InvalidMessage if isinstance(error, InvalidValueError) else Result.UnknownError
