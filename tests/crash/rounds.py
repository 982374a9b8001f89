"""kill -9 a real broker under load, again and again on one data directory, and hold every start to every promise.

``make crash ROUNDS=200`` or ``python -m tests.crash.rounds --rounds 200 --seed 7``. One line per round; exit 1 at a
violation, with the data directory kept and named. What is promised:

* a receipted message is there, once, unchanged, in its producer's order, until every subscription has acknowledged it;
* an answered acknowledgment is never undone; an unanswered one not by a clean stop, and by a kill only if the broker
  read it less than a second before (the journal's delay is 20 ms; the rest is the machine's).

The seed decides the load's choices and the moments; threads and sockets add their own chance.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.crash.broker_process import BrokerProcess, free_port
from tests.crash.client_history import ClientHistory
from tests.crash.load import Round, look

TOPICS: Final = ["a", "b", "c"]
_SHOWN: Final = 20


class Rounds:
    """All rounds on one directory."""

    def __init__(self, data: Path, seed: int) -> None:
        self.data = data
        self.seed = seed
        self.history = ClientHistory()
        self.starts_ms: list[float] = []
        self._rng = random.Random(seed)

    async def play(self, number: int) -> str:
        """One life of the broker; returns the line that reports it."""
        rng, history = self._rng, self.history
        before = dict(history.counts)
        port = free_port()
        broker = self._broker(port)
        kills = await self._kill_while_starting(broker)
        await broker.spawn()
        await broker.ready()
        ready_ms = (time.monotonic() - broker.started_at) * 1000
        try:
            for topic in TOPICS:
                if topic in history.topics:
                    history.looked(topic, *await look(port, topic))
            load_at = time.monotonic()
            load = Round(history, port, number, TOPICS, rng)
            load.start()
            await asyncio.sleep(rng.choice((0.05, 0.3, 1.0, 2.5)) * (0.5 + rng.random()))
            clean = rng.random() < 0.15
            at = time.monotonic()
            await (broker.stop() if clean else broker.kill())
            await load.ended()
            history.killed(at, clean=clean)
        finally:
            await broker.kill()
        publish_ms = ready_ms + (load.first_receipt_at - load_at) * 1000 if load.first_receipt_at else 0.0
        if publish_ms:
            self.starts_ms.append(publish_ms)
        delta = {name: count - before.get(name, 0) for name, count in history.counts.items()}
        end = "SIGTERM" if clean else "kill -9"
        return (
            f"round {number:4}: {end}, {kills} kills during start, {delta.get('receipted', 0):6} receipted, "
            f"{delta.get('delivered', 0):6} delivered, {delta.get('acks answered', 0):5} acks answered, "
            f"first publish {publish_ms:5.0f} ms after start, {len(history.violations)} violations"
        )

    def _broker(self, port: int) -> BrokerProcess:
        rng = self._rng
        module = rng.choice(("tests.crash.launch", "tests.crash.launch", "magnetar.app.main"))
        settings: dict[str, object] = {"managedLedgerMinLedgerRolloverTimeMinutes": 0}
        if rng.random() < 0.8:
            settings["managedLedgerMaxEntriesPerLedger"] = rng.choice((3, 50, 500))
        return BrokerProcess(self.data, port, self.data.parent / "broker.log", module, settings)

    async def _kill_while_starting(self, broker: BrokerProcess) -> int:
        """Some starts are killed in the middle of recovery."""
        kills = 0
        while self._rng.random() < 0.25:
            await broker.spawn()
            await asyncio.sleep(self._rng.uniform(0.1, 0.6))
            await broker.kill()
            kills += 1
        return kills

    async def last_look(self) -> None:
        """Start once more and judge what the last round left."""
        port = free_port()
        broker = self._broker(port)
        await broker.spawn()
        try:
            await broker.ready()
            for topic in TOPICS:
                self.history.looked(topic, *await look(port, topic))
            await broker.stop()
        finally:
            await broker.kill()

    def summary(self) -> str:
        """All rounds in a few lines."""
        counts = self.history.counts
        ghosts = sum(len(topic.ghosts) for topic in self.history.topics.values())
        starts = sorted(self.starts_ms) or [0.0]
        return (
            f"seed {self.seed}: {counts['receipted']} messages receipted, {counts['delivered']} delivered, "
            f"{counts['acks answered']} acks answered, {counts['acks unanswered at a kill']} open at a kill, "
            f"{counts['trimmed']} trimmed, {counts['lost']} lost, {ghosts} stored without a receipt; "
            f"start to first publish: median {starts[len(starts) // 2]:.0f} ms, worst {starts[-1]:.0f} ms"
        )


async def _main(rounds: Rounds, count: int) -> None:
    for number in range(1, count + 1):
        sys.stdout.write(await rounds.play(number) + "\n")
        sys.stdout.flush()
        if len(rounds.history.violations) > _SHOWN:
            break
    await rounds.last_look()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    chosen = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="magnetar-crash-"))
    rounds = Rounds(place / "data", chosen.seed)
    try:
        asyncio.run(_main(rounds, chosen.rounds))
    except (RuntimeError, TimeoutError, AssertionError) as error:
        rounds.history.violated(f"{type(error).__name__}: {error}")
    sys.stdout.write(rounds.summary() + "\n")
    for text in rounds.history.violations[:_SHOWN]:
        sys.stdout.write(f"VIOLATION {text}\n")
    if rounds.history.violations:
        sys.stdout.write(f"{len(rounds.history.violations)} violations; everything is kept in {place}\n")
        return 1
    shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
