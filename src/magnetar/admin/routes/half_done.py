"""What a refusal by the disk says of a request that takes several steps: what is done, and how to complete it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from magnetar.model.errors import MetadataError, PersistenceError


@contextmanager
def half_done(done: Callable[[], str]) -> Iterator[None]:
    """Have a refusal by the disk say what of a request is ``done``; an empty text: nothing yet.

    Its own words, that nothing was changed or accepted, are those of one step.
    """
    try:
        yield
    except (MetadataError, PersistenceError) as error:
        if not (text := done()):
            raise
        cause: BaseException = error
        while isinstance(cause.__cause__, Exception):
            cause = cause.__cause__
        raise type(error)(f"{text}; the rest is not: {cause}. The same request completes it") from error
