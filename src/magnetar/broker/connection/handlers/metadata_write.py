"""Commands that may write metadata: answered in their turn when the store does not wait (decision 027)."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from magnetar.broker.connection.session import Session
from magnetar.model.errors import MagnetarError
from magnetar.runtime.eager import Done, run_eagerly

T = TypeVar("T")


def write_metadata(session: Session, coroutine: Coroutine[Any, Any, T], done: Done[T], command: str) -> None:
    """Begin ``coroutine`` at once; ``done`` is called with its result, unless the session is closed by then."""

    async def guarded() -> T:
        try:
            return await coroutine
        except MagnetarError:
            raise
        except Exception:
            session.close("a fault of the broker", fault=False)
            raise

    def ended(value: T | None, error: MagnetarError | None) -> None:
        if not session.closed:
            done(value, error)

    run_eagerly(guarded(), ended, session.service.tasks, command)
