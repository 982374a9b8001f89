"""Lists of topics as answers: as large as a frame may be, and made in steps."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.handlers.topic_list_answer import put_list
from magnetar.config.settings import Settings

LARGEST = 100 + 10 * 1024
"""Bytes of a frame where messages have up to 100."""


def frame(size: int, steps: list[int]) -> Generator[int, None, list[bytes]]:
    """One of so many bytes, in two parts."""
    yield from steps
    return [b"head", bytes(size - 4)]


@pytest.mark.parametrize(("size", "sent"), [(LARGEST, True), (LARGEST + 1, False)])
def test_a_list_may_fill_a_frame_to_its_last_byte(size: int, sent: bool) -> None:
    grew: list[int] = []
    refused: list[str] = []
    out = SimpleNamespace(parts=[], grew=grew.append)
    session = SimpleNamespace(
        service=SimpleNamespace(settings=Settings(maxMessageSize=100)),
        out=out,
        fail=lambda request_id, error: refused.append(f"{request_id}: {error}"),
    )
    putting = put_list(cast(Any, session), 5, frame(size, [6, 13, 5]))
    steps: list[int] = []
    while True:
        try:
            steps.append(next(putting))
        except StopIteration as end:
            assert end.value is sent
            break
    assert steps == [1, 2, 0], "units: six names each"
    assert (sum(map(len, out.parts)), grew) == ((size, [size]) if sent else (0, []))
    assert bool(refused) is not sent
    assert all(text.startswith(f"5: the list of topics takes {size} bytes, a frame {LARGEST}") for text in refused)
