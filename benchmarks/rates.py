"""How exactly limits of rates hold: ``python -m benchmarks.rates``, over real sockets and in real time.

For each kind of limit and each rate a broker of its own is flooded; the first second is given away, the next ten are
counted. Batches have at most a hundredth of a second's messages, as a limit lets whole entries pass. What a subscribe
rate limits is one consumer, by its address, name and id (rule 14.6): one connection subscribes some 400 times a second,
so that several are that consumer here, on a Shared subscription; more than 1,000 a second are not asked for.
Exit code 1: one is off by more than 2 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from tests.wire.rate_loads import Drain, Flood, T
from tools.servers import magnetar
from tools.servers.process import HOST, Server

from magnetar.model.errors import MagnetarError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError

RATES: Final = (10, 1_000, 100_000)
ALLOWED: Final = 0.02
SUBSCRIBES_MAX: Final = 1_000
SUBSCRIBERS: Final = 8
WARM_UP_S: Final = 1.0
POLICIES: Final = f"/admin/v2/persistent/{T.removeprefix('persistent://')}"


def ask(server: Server, method: str, path: str, value: object = None) -> None:
    """Send a request to the REST interface."""
    body = b"" if value is None else json.dumps(value).encode()
    request = urllib.request.Request(server.http_url + path, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30):
        pass


def limit(server: Server, name: str, value: dict[str, int]) -> None:
    """Set a policy of the topic."""
    ask(server, "POST", f"{POLICIES}/{name}", value)


async def opened(server: Server) -> RawClient:
    client = await RawClient.open(HOST, server.broker_port)
    await client.connect()
    return client


def batch_for(rate: int) -> int:
    return max(rate // 1_000, 1)


async def counted(messages: Callable[[], int], seconds: float) -> float:
    """What came in each of so many seconds, after the warm-up, by the time that really passed."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(WARM_UP_S)
    before, began = messages(), loop.time()
    await asyncio.sleep(seconds)
    return (messages() - before) / (loop.time() - began)


async def publish(server: Server, rate: int, seconds: float) -> float:
    ask(server, "PUT", POLICIES)
    limit(server, "publishRate", {"publishThrottlingRateInMsg": rate, "publishThrottlingRateInByte": -1})
    flood = await Flood(batch_for(rate)).start(await opened(server), T)
    return await counted(lambda: flood.messages, seconds)


async def dispatch(server: Server, rate: int, seconds: float) -> float:
    """From a backlog that is larger than what may pass."""
    batch = batch_for(rate)
    total = int(rate * (seconds + WARM_UP_S + 1)) // batch + 100
    filled = await Flood(batch, total=total).start(client := await opened(server), T)
    await filled.all_stored.wait()
    await client.close()
    value = {"dispatchThrottlingRateInMsg": rate, "dispatchThrottlingRateInByte": -1, "ratePeriodInSecond": 1}
    limit(server, "dispatchRate", value)
    drain = await Drain(batch).start(await opened(server), T)
    return await counted(lambda: drain.messages, seconds)


async def subscribe(server: Server, rate: int, seconds: float) -> float:
    """One consumer that subscribes again and again, refused or not, over several connections."""
    ask(server, "PUT", POLICIES)
    limit(server, "subscribeRate", {"subscribeThrottlingRatePerConsumer": rate, "ratePeriodInSecond": 1})
    done = 0

    async def again(client: RawClient) -> None:
        nonlocal done
        while True:
            asked = c.CommandSubscribe(T, "s", c.SubType.Shared, 7, client.new_id(), consumer_name="one")
            try:
                await client.request(asked, c.CommandSuccess)
            except RawClientError:
                await asyncio.sleep(0.001)
                continue
            done += 1
            await client.request(c.CommandCloseConsumer(7, client.new_id()), c.CommandSuccess)

    tasks = [asyncio.create_task(again(await opened(server))) for _ in range(SUBSCRIBERS)]
    try:
        return await counted(lambda: done, seconds)
    finally:
        for task in tasks:
            task.cancel()


KINDS: Final[dict[str, Callable[[Server, int, float], Coroutine[Any, Any, float]]]] = {
    "publish": publish,
    "dispatch": dispatch,
    "subscribe": subscribe,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=list(RATES), help="messages a second")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    wrong = 0
    for kind in asked.kinds:
        for rate in sorted({min(rate, SUBSCRIBES_MAX) if kind == "subscribe" else rate for rate in asked.rates}):
            with tempfile.TemporaryDirectory(prefix="rates-") as scratch, magnetar.start(Path(scratch)) as server:
                found = asyncio.run(KINDS[kind](server, rate, asked.seconds))
            off = found / rate - 1
            wrong += abs(off) > ALLOWED
            print(f"{kind:10} {rate:8,} a second: {found:12,.2f} ({off:+.2%})", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MagnetarError, OSError) as error:
        sys.exit(f"rates: {error}")
