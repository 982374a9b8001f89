"""A compacted reader against a list of messages, while transactions end, ledgers are trimmed and brokers are killed.

Every value is a number of its own. A compacted reader has to get, in order, nothing but messages that are committed and
stand before the first open transaction; and the last one per key among them has to be the last one of all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import pytest

from magnetar.broker.topic.transactions.isolation import ReadCommittedRule
from magnetar.protocol.commands.ids import TxnId
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic

SEEDS = round(15 * float(os.environ.get("MAGNETAR_SEEDS", "1")))
OFTEN = (
    "publish",
    "publish",
    "publish",
    "publish",
    "send",
    "send",
    "send",
    "begin",
    "end",
    "end",
    "compact",
    "compact",
)
SELDOM = ("roll", "acknowledge", "trim", "trim", "hide", "unload", "kill", "restart")


@dataclass
class Message:
    ordinal: int
    key: str
    value: int
    txn: int | None


class Walk:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.place = LoadedTopic()
        self.place.topic.compaction().prepare()
        self.place.topic.create_subscription("keeps", 0)
        self.messages: list[Message] = []
        self.txns: list[str] = []
        """Open, committed or aborted, by number."""
        self.readers = 0

    def open(self) -> list[int]:
        return [number for number, state in enumerate(self.txns) if state == "open"]

    def append(self, txn: int | None) -> None:
        key, value = f"k{self.rng.randrange(6)}", len(self.messages)
        ordinal = self.place.append(key, str(value), None if txn is None else TxnId(0, txn))
        self.messages.append(Message(ordinal, key, value, txn))

    async def step(self) -> str:
        what = self.rng.choice(OFTEN + SELDOM)
        act: Callable[[], Awaitable[None]] = getattr(self, what)
        await act()
        await self.place.durable()
        return what

    async def publish(self) -> None:
        for _ in range(self.rng.randint(1, 6)):
            self.append(None)

    async def send(self) -> None:
        if self.open():
            self.append(self.rng.choice(self.open()))

    async def begin(self) -> None:
        if len(self.open()) < 3:
            self.txns.append("open")

    async def end(self) -> None:
        if self.open():
            number, commit = self.rng.choice(self.open()), self.rng.random() < 0.5
            self.txns[number] = "committed" if commit else "aborted"
            self.place.topic.transacting().end(TxnId(0, number), commit=commit, sent=True)

    async def compact(self) -> None:
        await self.place.compact()

    async def roll(self) -> None:
        self.place.topic.log.open_ledger()

    async def acknowledge(self) -> None:
        self.place.topic.subscriptions["keeps"].skip_until(self.rng.randint(0, self.place.topic.log.end) - 1)

    async def trim(self) -> None:
        self.place.topic.trim()

    async def hide(self) -> None:
        log = self.place.topic.log
        self.place.topic.trim_to(min(self.rng.randint(log.first, log.end), self.place.topic.slowest() + 1), 0)

    async def unload(self) -> None:
        self.place.topic.close()
        self.place.load()

    async def kill(self) -> None:
        await self.place.durable()
        self.place.kill()

    async def restart(self) -> None:
        await self.place.restart()

    async def look(self) -> None:
        self.readers += 1
        values = [int(value) for value in await self.place.compacted(f"r{self.readers}")]
        limit = min((m.ordinal for m in self.messages if m.txn in self.open()), default=1 << 60)
        seen = [
            m for m in self.messages
            if m.ordinal < limit and (m.txn is None or self.txns[m.txn] == "committed")
        ]  # fmt: skip
        assert values == sorted(set(values))
        assert set(values) <= {m.value for m in seen}, "what nobody may see"
        assert {self.messages[value].key: value for value in values} == {m.key: m.value for m in seen}
        reader = self.place.topic.subscriptions[f"r{self.readers}"]
        reader.disconnect_all()
        self.place.topic.consumer_gone(reader)


async def walk(seed: int) -> None:
    self, done = Walk(seed), []
    await self.place.durable()
    for _ in range(60):
        done.append(await self.step())
        if done[-1] in ("compact", "trim", "hide", "kill", "restart", "unload"):
            try:
                await self.look()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {done}: {error}") from error
    await asyncio.sleep(1)
    self.place.topic.close()
    await self.place.store.close()


def test_a_compacted_reader_gets_the_last_value_of_every_key() -> None:
    for seed in range(SEEDS):
        run_in(SimLoop(seed, limit_s=1e9), walk(seed))


def test_a_view_that_transactions_hide_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it once was: what was trimmed counted as hidden, in the view as well."""
    monkeypatch.setattr(
        ReadCommittedRule, "next_open", lambda self, start, stop: min(self._buffer.hidden.next_missing(start), stop)
    )
    with pytest.raises(AssertionError, match="seed"):
        test_a_compacted_reader_gets_the_last_value_of_every_key()
