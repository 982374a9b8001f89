"""After a burst Python's arenas go back to the system, although freed objects were kept in all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[4]
PROGRAM: Final = r"""
import asyncio, contextvars, gc, os, re, struct, sys, tempfile
import uvloop
from magnetar.runtime.memory.free_lists import FreeLists

def arenas():
    # what the interpreter says of its allocator goes to the descriptor of standard error
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(kept, 2)
        os.close(kept)
        file.seek(0)
        return int(re.search(rb"arenas allocated current *= *(\d+)", file.read())[1])

class Named:
    pass

def pieces(loop, number):
    '''What one connection is made of, more or less.'''
    made = [("%d %d" % (number, one)).encode() * 4 for one in range(400)]
    made += [tuple(range(length)) for length in range(1, 20) for _ in range(20)]
    made += [contextvars.copy_context(), loop.call_later(60.0, print), loop.call_soon(int), float(number)]
    made += [iter(loop.create_future()), {number: number}, [number]]
    getattr(Named, "attribute %d" % number, None)
    if number % 7 == 0:
        struct.calcsize("<%dI" % number)
    return made

async def main():
    loop, lists = asyncio.get_running_loop(), FreeLists()
    before = arenas()
    burst = [pieces(loop, number) for number in range(600)]
    most = arenas()
    for one in burst:
        for part in one:
            if hasattr(part, "cancel"):
                part.cancel()
    del one, part
    await asyncio.sleep(0.1)
    while burst:
        burst.pop()
    await asyncio.sleep(0.1)
    kept = arenas()
    await lists.give_back()
    await asyncio.sleep(0.1)
    print(before, most, kept, arenas())

gc.collect()
asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main())
"""


def test_a_burst_leaves_no_arenas_behind() -> None:
    command, paths = [sys.executable, "-c", PROGRAM], {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, env=paths)
    before, most, kept, after = map(int, done.stdout.split())
    assert most > before + 20
    assert kept > before + 10, "else there is nothing to give back"
    assert after < before + 10
