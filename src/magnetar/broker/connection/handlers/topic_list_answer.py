"""Answers with lists of topics that may be long, sent in steps of so many units of the connection's turn."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from magnetar.broker.connection.session import Session
from magnetar.model.errors import NotAllowedError
from magnetar.protocol.frames import FRAME_PADDING
from magnetar.protocol.handmade_frames.topic_lists import Frame

_ENCODED_PER_UNIT: Final = 6
"""Names that are put into a frame in the time of one unit."""


def put_list(session: Session, request_id: int, frame: Frame) -> Generator[int, None, bool]:
    """Send the frame, or an error if it is larger than clients accept; returns whether it was sent."""
    parts = yield from _made(frame)
    most = session.service.settings.maxMessageSize + FRAME_PADDING
    size = sum(map(len, parts))
    if size > most:
        error = f"the list of topics takes {size} bytes, a frame {most}: give a pattern that fewer topics match"
        session.fail(request_id, NotAllowedError(error))
        return False
    for part in parts:
        session.out.parts.append(part)
    session.out.grew(size)
    return True


def _made(frame: Frame) -> Generator[int, None, list[bytes]]:
    while True:
        try:
            names = next(frame)
        except StopIteration as end:
            parts: list[bytes] = end.value
            return parts
        yield names // _ENCODED_PER_UNIT
