"""What a load test opens is opened some at a time, and stops at the first error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from magnetar.cli.perf.openings import AT_ONCE, opened
from magnetar.testing.simloop import SimLoop, run_in

COUNT = 5 * AT_ONCE + 1


class Gate:
    """Counts who is on the way in; each needs a second."""

    def __init__(self, fails_at: int = COUNT) -> None:
        self.made = self.inside = self.most = 0
        self._fails_at = fails_at

    async def _enter(self, number: int) -> int:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(1)
        self.inside -= 1
        if number == self._fails_at:
            raise ValueError("refused")
        return number

    def openings(self) -> Iterator[asyncio.Future[int]]:
        for number in range(COUNT):
            self.made += 1
            yield asyncio.ensure_future(self._enter(number))


def test_all_are_opened_in_order_and_never_more_than_some_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    gate = Gate()

    async def main() -> list[int]:
        return await opened(gate.openings())

    assert run_in(SimLoop(0, limit_s=100), main()) == list(range(COUNT))
    assert gate.most == AT_ONCE
    assert f"Opened {5 * AT_ONCE} so far" in capsys.readouterr().out


def test_after_the_first_error_nothing_is_opened() -> None:
    gate = Gate(fails_at=AT_ONCE + 3)

    async def main() -> None:
        with pytest.raises(ValueError, match="refused"):
            await opened(gate.openings())

    run_in(SimLoop(0, limit_s=100), main())
    assert gate.made == 2 * AT_ONCE
