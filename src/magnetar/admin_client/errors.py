"""The errors of the admin client: one class for each thing that a program may do about them.

Each knows the request, the HTTP status, the broker's reason and the next step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from magnetar.model.errors import MagnetarError


class AdminError(MagnetarError):
    """A request was refused, or could not be made."""

    def __init__(self, http_status: int, reason: str, method: str, path: str, next_step: str) -> None:
        super().__init__(f"{method} {path}: {_status(http_status)}{reason}" + (f"; {next_step}" if next_step else ""))
        self.http_status = http_status
        """0: there was no answer."""
        self.reason = reason
        self.method = method
        self.path = path
        self.next_step = next_step
        """What to do about it; empty if only the reason says it."""

    def __reduce__(self) -> tuple[type[AdminError], tuple[int, str, str, str, str]]:
        return type(self), (self.http_status, self.reason, self.method, self.path, self.next_step)


class AdminInvalidRequestError(AdminError):
    """400, 406, 413, 415, 422: the request itself is wrong."""


class AdminUnauthenticatedError(AdminError):
    """401: the broker does not know who asks, or (Apache Pulsar) does not permit it."""


class AdminForbiddenError(AdminError):
    """403: the role may not do that."""


class AdminNotFoundError(AdminError):
    """404: there is no such tenant, namespace, topic, subscription ..."""


class AdminNotAllowedError(AdminError):
    """405: not on an object of this kind, such as a partitioned or a non-persistent topic."""


class AdminConflictError(AdminError):
    """409: it exists already, or something else stands in the way."""


class AdminPreconditionFailedError(AdminError):
    """412: a name is not valid, or the object is not in a state that allows it."""


class AdminRedirectError(AdminError):
    """307: another broker serves it, which is not known to be one that may have the credentials."""


class AdminServerError(AdminError):
    """5xx: the broker failed."""


class AdminNotAvailableError(AdminServerError):
    """501: the broker does not have that operation."""


class AdminNoAnswerError(AdminError):
    """No answer came: no connection, no trust, no time left, or no HTTP."""


_CLASSES: Final[Mapping[int, type[AdminError]]] = {
    401: AdminUnauthenticatedError,
    403: AdminForbiddenError,
    404: AdminNotFoundError,
    405: AdminNotAllowedError,
    409: AdminConflictError,
    412: AdminPreconditionFailedError,
    501: AdminNotAvailableError,
}
_STEPS: Final[Mapping[int, str]] = {
    403: "admin.permissions.explain(role=..., operation=...) says which grant is missing",
    404: "look at the name, or create it first",
    501: "this broker does not have the operation",
    503: "the broker does not serve yet; try again in a moment",
}


def refusal(http_status: int, reason: str, method: str, path: str, step: str | None) -> AdminError:
    """The error for an answer; ``step``: the next one, where more is known than the status."""
    kind = _CLASSES.get(http_status)
    if kind is None:
        if 300 <= http_status < 400:
            kind = AdminRedirectError
        else:
            kind = AdminServerError if http_status >= 500 else AdminInvalidRequestError
    steps = [one for one in (step, _STEPS.get(http_status)) if one]
    return kind(http_status, reason, method, path, "; ".join(steps))


def no_answer(error: Exception, method: str, path: str) -> AdminError:
    """The error for a request without an answer."""
    return AdminNoAnswerError(0, str(error), method, path, "is the address that of the REST interface?")


def _status(http_status: int) -> str:
    return f"{http_status} " if http_status else ""
