"""What a client can meet. Three kinds, because callers do three things about them.

* `ConnectionLostError`: connect again and go on; nothing is known to be wrong with the request.
* `RefusedError`: the broker said no; its code tells whether waiting helps (`retriable`).
* `ClientTimeoutError`: nobody answered; the text says who was asked what and for how long.
"""

from __future__ import annotations

from typing import Final

from magnetar.client.gap import DataGap
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


class ClientError(MagnetarError):
    """Root of what the client raises."""


class ConnectionLostError(ClientError):
    """The socket could not be opened, broke, or the broker closed it."""


class ClientTimeoutError(ClientError):
    """No answer in time."""


class DataLossError(ClientError):
    """A range was asked for that the broker does not have any more, or not as it was sent."""

    def __init__(self, message: str, gap: DataGap | None = None) -> None:
        super().__init__(message)
        self.gap = gap
        """What is missing, if that is what is wrong."""


class RefusedError(ClientError):
    """The broker answered with an error."""

    def __init__(self, what: str, error: ServerError, message: str) -> None:
        super().__init__(f"{what}: {error.name}: {message}")
        self.error = error

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.error in _RETRIABLE
