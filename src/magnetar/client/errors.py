"""The errors of the client, of four kinds, because callers do four things about them; and those of its own queues.

* `ConnectionLostError`: connect again and go on; nothing is known to be wrong with the request.
* `RefusedError`: the broker refused; its code shows whether waiting helps (`retriable`).
* `ClientTimeoutError`: no answer came; the text says which broker was asked what and for how long.
* `TlsError`: certificates or settings have to be changed before it is tried again.
"""

from __future__ import annotations

from typing import Final

from magnetar.model.errors import MagnetarError, ServerError

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
_REASONS: Final = {
    ServerError.TopicNotFound: "there is no such topic; look at its name and namespace, or create it",
    ServerError.SubscriptionNotFound: "there is no such subscription",
    ServerError.AuthenticationError: "the broker does not know this client",
    ServerError.AuthorizationError: "this client is not permitted to do this",
    ServerError.ServiceNotReady: "the broker does not serve this topic yet; try again in a moment",
    ServerError.ConsumerBusy: "another consumer is connected to this subscription",
    ServerError.ProducerBusy: "a producer of this name is connected already",
    ServerError.TooManyRequests: "the broker has too much to do; try again in a moment",
    ServerError.TopicTerminatedError: "the topic was terminated: nothing can be published to it any more",
    ServerError.InvalidTopicName: "this cannot be the name of a topic",
}
"""The text for an error of which the broker gives only the code."""


class ClientError(MagnetarError):
    """The root of all errors that the client raises."""


class ConnectionLostError(ClientError):
    """The socket could not be opened, broke, or the broker closed it."""


class TlsError(ClientError):
    """TLS with the broker was not agreed; no credential was sent."""


class ClientTimeoutError(ClientError):
    """No answer came in time."""


class RefusedError(ClientError):
    """The broker answered with an error."""

    def __init__(self, what: str, error: ServerError, message: str | None, advice: str | None = None) -> None:
        reason = message or _REASONS.get(error, "the broker gives no reason")
        super().__init__(f"{what}: {error.name}: {reason}" + ("" if advice is None else f"; {advice}"))
        self.error = error

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.error in _RETRIABLE


class MessageTooLargeError(ClientError):
    """A message is larger than the broker takes, and chunking is off."""

    def __init__(self, topic: str, size: int, limit: int) -> None:
        super().__init__(
            f"{topic}: a message of {size} bytes is larger than the {limit} the broker takes; "
            "turn chunking on (without batching), or raise maxMessageSize of the broker"
        )
        self.size = size
        self.limit = limit


class UnpackedTooLargeError(ClientError):
    """A message that this consumer must not unpack, since it would be too large here; it stays unacknowledged."""

    def __init__(self, ledger: int, entry: int, size: int, limit: int, topic: str) -> None:
        super().__init__(
            f"message {ledger}:{entry} has {size} bytes unpacked, above {limit} taken here; "
            f"it stays unacknowledged on {topic}"
        )


class QueueFullError(ClientError):
    """As many messages wait for their receipts as may; wait for some, or turn block_if_queue_full on."""


class AlreadyClosedError(ClientError):
    """The client, producer, consumer or reader was closed."""


class NotBuiltError(ClientError):
    """A feature of other clients that this one does not have; nothing was done."""
