"""Open and close one kind of thing again and again, and say what the process holds after a tenth of it and at the end.

``python -m tests.client_seeds.cycles KIND URL COUNT`` prints a line of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import magnetar
from magnetar import aio

TOPIC: Final = "cycles"
OPENERS: Final[dict[str, Callable[[Any], Any]]] = {
    "producer": lambda client: client.create_producer(TOPIC),
    "consumer": lambda client: client.subscribe(TOPIC, "s"),
    "reader": lambda client: client.create_reader(TOPIC, aio.MessageId.earliest),
}
KINDS: Final = tuple(f"{face}, {what}" for face in ("blocking", "asyncio") for what in ("client", *OPENERS))


def held() -> dict[str, int]:
    """Return what the process has now: kilobytes resident, file descriptors (sockets among them), threads."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss_kb": pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        "fds": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


def blocking(what: str, url: str, count: int) -> list[dict[str, int]]:
    """Return what is held after a tenth, and at the end."""
    found = []
    with magnetar.Client(url) as client:
        for number in range(1, count + 1):
            if what == "client":
                with magnetar.Client(url) as one, one.create_producer(TOPIC) as producer:
                    producer.send(b"-")
            else:
                OPENERS[what](client).close()
            if number in (count // 10, count):
                found.append(held())
    return found


async def in_a_loop(what: str, url: str, count: int) -> list[dict[str, int]]:
    """Open and close them with asyncio."""
    found = []
    opener: Callable[[Any], Awaitable[Any]]
    async with aio.Client(url) as client:
        for number in range(1, count + 1):
            if what == "client":
                async with aio.Client(url) as one, await one.create_producer(TOPIC) as producer:
                    await producer.send(b"-")
            else:
                opener = OPENERS[what]
                await (await opener(client)).close()
            if number in (count // 10, count):
                found.append(held())
    return found


def main(kind: str, url: str, count: str) -> None:
    face, _, what = kind.partition(", ")
    run = blocking if face == "blocking" else lambda *given: asyncio.run(in_a_loop(*given))
    sys.stdout.write(json.dumps(run(what, url, int(count))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
