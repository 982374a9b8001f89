"""Free pages of Python's arenas go back to the system, and what is in use stays as it is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from magnetar.runtime.memory import balloon
from magnetar.runtime.memory.balloon import BLOCK, Balloon

ROOT: Final = Path(__file__).resolve().parents[4]
LINUX: Final = pytest.mark.skipif(sys.platform != "linux", reason="pages are given back on Linux only")
BURST: Final = r"""
import asyncio, random, sys
from magnetar.runtime.memory.balloon import Balloon
from magnetar.runtime.memory.trim import resident_bytes

def what(number):
    return number.to_bytes(4, "big") * (number % 120)

async def main():
    held = Balloon()
    burst = [what(number) for number in range(150_000)]
    kept = {number: burst[number] for number in range(0, 150_000, 500)}
    full = resident_bytes()
    burst.clear()
    blocks, free = sys.getallocatedblocks(), resident_bytes()
    given = await held.fill()
    less, taken = resident_bytes(), held.blocks
    assert sys.getallocatedblocks() >= blocks + taken > blocks
    assert all(what(number) == one for number, one in kept.items())
    more = [what(number) for number in range(100_000)]  # the balloon's places are not at hand: others are found
    assert all(what(number) == one for number, one in enumerate(more))
    del more
    await held.empty()
    assert held.blocks == 0
    assert sys.getallocatedblocks() < blocks + 500
    chance = random.Random(7)
    for turn in range(10):  # filled and emptied amid what comes and goes
        come = [what(chance.randrange(1 << 20)) for _ in range(chance.randrange(30_000))]
        for place in range(0, len(come), 3):
            come[place] = b""
        await held.fill()
        await held.fill()
        assert all(what(number) == one for number, one in kept.items())
        await held.empty()
    come.clear()
    assert sys.getallocatedblocks() < blocks + 100, "not one of each slice is lost"
    print(full >> 10, free >> 10, less >> 10, given >> 10)

asyncio.run(main())
"""
GAPS: Final = r"""
import asyncio
from magnetar.runtime.memory.balloon import Balloon

async def main():
    held = Balloon()
    kept = [bytes([number % 256]) * 400 for number in range(50_000)]
    del kept[::2]
    await held.fill()
    assert all(one == bytes([(2 * place + 1) % 256]) * 400 for place, one in enumerate(kept))
    await held.empty()

asyncio.run(main())
"""


def run(program: str, **environment: str) -> list[int]:
    command, names = [sys.executable, "-c", program], {"PYTHONPATH": str(ROOT / "src"), **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=names)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


@LINUX
def test_half_of_what_a_burst_left_behind_goes_back() -> None:
    full, free, less, given = run(BURST)
    assert free > full - 2_000, "else Python gave the arenas back itself"
    assert given > 8_000
    assert free - given - 2_000 < less < free - given + 2_000, "in kilobytes"


@LINUX
@pytest.mark.parametrize("allocator", ("malloc", "pymalloc_debug"))
def test_another_allocator_does_no_harm(allocator: str) -> None:
    """Its blocks have something of its own between them, or it gives back pages itself."""
    run(GAPS, PYTHONMALLOC=allocator)


@LINUX
def test_a_system_that_refuses_gets_everything_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def refuse(start: int, end: int) -> bool:
        asked.append((start, end))
        return False

    monkeypatch.setattr(balloon, "_dismiss", refuse)
    many = [bytes(BLOCK - 40) for _ in range(50_000)]
    last = many[-1]
    del many
    held = Balloon()
    assert asyncio.run(held.fill()) == 0
    assert held.blocks == 0
    assert asked
    del asked[:]
    assert asyncio.run(held.fill()) == 0
    assert not asked, "once is enough"
    assert last == bytes(BLOCK - 40)


def test_elsewhere_it_stays_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    held = Balloon()
    assert asyncio.run(held.fill()) == 0
    assert held.blocks == 0
    asyncio.run(held.empty())


@pytest.mark.parametrize("answers", ((0, 0), (0, 9), (9, 0), (9, 9 + balloon._NEW_PAGES)))
def test_what_cannot_be_told_from_new_places_is_not_taken(
    answers: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = list(answers)
    monkeypatch.setattr(balloon, "_mapped_pages", lambda: left.pop(0))
    held = Balloon()
    before = sys.getallocatedblocks()
    assert asyncio.run(held.fill()) == 0
    assert not left, "one slice"
    assert held.blocks == 0
    assert sys.getallocatedblocks() < before + 500


def test_a_heap_of_the_c_library_that_grows_meanwhile_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows by 132 KB at least, an arena of Python by twice as much: a list of addresses once ended the filling."""
    left = [9, 9 + balloon._NEW_PAGES - 1, 0, 0]
    monkeypatch.setattr(balloon, "_mapped_pages", lambda: left.pop(0))
    held = Balloon()
    asyncio.run(held.fill())
    assert not left, "two slices"
    asyncio.run(held.empty())


def test_only_pages_wholly_within_its_blocks() -> None:
    page = balloon._PAGE
    assert balloon._pages_within(page, 2 * page) == (page, 2 * page)
    assert balloon._pages_within(page + 1, 2 * page) is None
    assert balloon._pages_within(page - 1, 2 * page + 1) == (page, 2 * page)
    assert balloon._pages_within(page, 2 * page - 1) is None
    assert balloon._pages_within(page + 48, 4 * page - 464) == (2 * page, 3 * page)


def test_runs_of_blocks() -> None:
    assert list(balloon._runs([])) == []
    assert list(balloon._runs([1024, 1536, 2560, 3072, 3584, 8192])) == [(1024, 2048), (2560, 4096), (8192, 8704)]
