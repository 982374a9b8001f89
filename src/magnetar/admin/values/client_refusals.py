"""What a refusal that a client within this process got means over HTTP: the statuses of Pulsar's WebSocket service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from magnetar.client.errors import ClientTimeoutError, RefusedError
from magnetar.model.errors import MagnetarError, ServerError

_STATUSES: Final[Mapping[ServerError, int]] = {
    ServerError.AuthenticationError: 401,
    ServerError.AuthorizationError: 403,
    ServerError.TopicNotFound: 404,
    ServerError.SubscriptionNotFound: 404,
    ServerError.MetadataError: 404,
    ServerError.ProducerBusy: 409,
    ServerError.ConsumerBusy: 409,
    ServerError.ConsumerAssignError: 409,
    ServerError.ProducerFenced: 409,
    ServerError.IncompatibleSchema: 409,
    ServerError.TooManyRequests: 429,
    ServerError.ProducerBlockedQuotaExceededError: 503,
    ServerError.ProducerBlockedQuotaExceededException: 503,
    ServerError.TopicTerminatedError: 503,
    ServerError.ServiceNotReady: 503,
    ServerError.NotAllowedError: 405,
    ServerError.InvalidTopicName: 412,
}


def reason_of(error: BaseException) -> str:
    """The text for the peer of a request: without the address and the login of the client that asked for it."""
    return error.reason if isinstance(error, RefusedError) else str(error)


def status_of(error: MagnetarError) -> int:
    """The HTTP status for an error of a client."""
    if isinstance(error, RefusedError):
        return _STATUSES.get(error.code, 500)
    if isinstance(error, ClientTimeoutError):
        return 504
    return 500
