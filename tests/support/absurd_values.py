"""Values that no call expects, for tests that give them to every parameter."""

from __future__ import annotations

import asyncio
import math
import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NoReturn

from magnetar import aio


class Strange:
    """An object that answers no question."""

    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("strange")

    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __iter__ = __int__ = __index__ = __lt__ = _refuse
    __hash__ = object.__hash__


ABSURD: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 5, 2**31, 2**63, -(2**70), 2**70, 10**5000, 0.5, math.nan, math.inf, -math.inf,
    "", "x", "a\nb", "\ud800", "y" * 1_000_000, "pulsar://", "-1", b"", b"x", bytearray(b"x"), b"\xff" * 9, 1j,
    [], [None], ["x", "x"], [1], ["\ud800"], (), {}, {"a": 1}, {1: "a"}, {"\ud800": ""}, {"a": None}, set(), range(3),
    object(), Strange(), [Strange()], int, Strange, print, timedelta(-1), timedelta.max, timedelta.min, Decimal("NaN"),
    re.compile("x("[:1]), re.compile(b"x"), ValueError("x"), ValueError, aio.MessageId(), aio.MessageId("x", topic="t"),  # type: ignore[arg-type]
    aio.MessageId(-1, 2**70, 0, topic="t"), asyncio.sleep,
)  # fmt: skip


def text_of(value: object) -> str:
    try:
        return f"{type(value).__name__} {repr(value)[:40]!a}"
    except Exception:
        return type(value).__name__
