"""Calls into interceptors: what they raise is logged, and never loses or changes a message."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.ctrl_c import is_ctrl_c

_LOG: Final = logging.getLogger(__name__)
Passed = TypeVar("Passed")


def checked(given: Sequence[Any], kind: type) -> tuple[Any, ...]:
    """Return interceptors that were given, in their order. Raises InvalidValueError about what is none."""
    for one in given:
        if not isinstance(one, kind):
            raise InvalidValueError(
                f"interceptors are of subclasses of {kind.__name__}; this is a {type(one).__name__}"
            )
    return tuple(given)


def passed_on(interceptors: Sequence[Any], method: str, owner: object, given: Passed) -> Passed:
    """Hand something from one interceptor to the next; what one returns that is of another kind does not count."""
    for one in interceptors:
        try:
            found = getattr(one, method)(owner, given)
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            _LOG.exception("%s.%s failed; the message goes on as it was", type(one).__name__, method)
            continue
        if isinstance(found, type(given)):
            given = found
        else:
            _LOG.error(
                "%s.%s returned %s and no message; the message goes on as it was",
                type(one).__name__, method, type(found).__name__,
            )  # fmt: skip
    return given


def told(interceptors: Sequence[Any], method: str, *given: object) -> None:
    """Call a method of all interceptors."""
    for one in interceptors:
        try:
            getattr(one, method)(*given)
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            _LOG.exception("%s.%s failed", type(one).__name__, method)
