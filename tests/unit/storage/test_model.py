"""LedgerStore against a naive model that keeps everything in lists and sets, step by random step (Hypothesis).

Steps: append, acknowledge one, many, up to, parts of batches, seek, make and delete subscriptions, trim, delete a
log, roll a ledger over, read anywhere, stop in order, kill. Every step ends with a drain, so a kill may lose nothing;
power failure between calls is the simulator's affair.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from magnetar.model.ids import Position
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from tests.support.loop_turns import settled
from tests.support.store_audit import audit
from tests.support.store_lives import disk, opened, read

SETTINGS = StoreSettings(
    segment_bytes=6_000, aligned_bytes_min=300, cache_bytes=700, ledger_entries_max=4, ledger_min_rollover_ms=0,
    reclaim_bytes_per_second=1 << 40,
)  # fmt: skip
BATCH = 5


@dataclass
class ModelCursor:
    acked: set[int]
    partial: dict[int, set[int]] = field(default_factory=dict)
    """What is left of a batch."""

    @property
    def mark_delete(self) -> int:
        mark = min(self.acked, default=-1)
        mark = -1
        while mark + 1 in self.acked:
            mark += 1
        return mark


@dataclass
class ModelLog:
    entries: list[bytes] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    first: int = 0
    cursors: dict[str, ModelCursor] = field(default_factory=dict)


NAMES = st.sampled_from(["a", "b", "c"])
SUBSCRIPTIONS = st.sampled_from(["s", "t"])
SHARES = st.floats(0, 1)


class StoreMachine(RuleBasedStateMachine):
    """One store on a simulated disk, one model."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.files = disk(1)
        self.store: LedgerStore
        self.logs: dict[str, ModelLog] = {}
        self.open: dict[str, ManagedLedger] = {}
        self.used: set[tuple[str, Position]] = set()
        self.written = 0
        self.do(self.start)

    @override
    def teardown(self) -> None:
        self.do(self.store.close)
        self.loop.close()

    def do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.loop.run_until_complete(work())

    async def start(self) -> None:
        self.store = opened(self.files, SETTINGS)
        # even the smallest reads are begun ahead
        self.store.reader.large.ahead_min = 0
        assert self.store.damage == []
        assert sorted(self.store.names()) == sorted(self.logs)
        self.open.clear()

    async def log(self, name: str) -> tuple[ManagedLedger, ModelLog]:
        if name not in self.open:
            self.open[name] = self.store.open_log(name)
            self.logs.setdefault(name, ModelLog())
            await self.drained()
        return self.open[name], self.logs[name]

    async def drained(self) -> None:
        await self.store.journal.drain()
        await settled()

    def change(self, name: str, work: Callable[[ManagedLedger, ModelLog], None]) -> None:
        async def main() -> None:
            work(*await self.log(name))
            await self.drained()

        self.do(main)

    def on_cursor(self, name: str, subscription: str, work: Callable[[Cursor, ModelCursor, ModelLog], None]) -> None:
        def found(managed: ManagedLedger, model: ModelLog) -> None:
            if subscription in model.cursors:
                work(managed.cursors[subscription], model.cursors[subscription], model)

        self.change(name, found)

    # entries -----------------------------------------------------------------------------------------------------

    @rule(name=NAMES, sizes=st.lists(st.integers(0, 300), min_size=1, max_size=7), apart=st.booleans())
    def append(self, name: str, sizes: list[int], apart: bool) -> None:
        async def main() -> None:
            managed, model = await self.log(name)
            for size in sizes:
                self.written += 1
                entry = b"%d " % self.written + random.Random(self.written).randbytes(size)
                count = BATCH if size % 2 else 1
                assert managed.append(entry, count, None) == len(model.entries)
                model.entries.append(entry)
                model.counts.append(count)
                if apart:
                    await self.drained()
            await self.drained()
            for ordinal in range(len(model.positions), len(model.entries)):
                position = managed.position(ordinal)
                assert (name, position) not in self.used
                self.used.add((name, position))
                model.positions.append(position)

        self.do(main)

    @rule(name=NAMES)
    def roll(self, name: str) -> None:
        self.change(name, lambda managed, model: void(managed.open_ledger()))

    @rule(name=NAMES, share=SHARES)
    def trim(self, name: str, share: float) -> None:
        def work(managed: ManagedLedger, model: ModelLog) -> None:
            keep = int(share * len(model.entries))
            for cursor in model.cursors.values():
                keep = min(keep, cursor.mark_delete + 1)
            managed.trim(keep)
            assert model.first <= managed.first <= max(keep, model.first)
            model.first = managed.first

        self.change(name, work)

    @rule()
    def remove_dead(self) -> None:
        async def main() -> None:
            await self.store.keeper.remove_dead()

        self.do(main)

    @rule()
    def begin_segment(self) -> None:
        async def main() -> None:
            self.store.journal.roll(lambda: None, lambda error: None)
            await self.drained()

        self.do(main)

    @rule()
    def rescue(self) -> None:
        async def main() -> None:
            await self.store.cleaner.run()
            await self.drained()

        self.do(main)

    @rule(name=NAMES, calls=st.integers(0, 8), trims=st.booleans())
    def power_off_during_rescue(self, name: str, calls: int, trims: bool) -> None:
        async def main() -> None:
            managed, model = await self.log(name)
            moving = asyncio.get_running_loop().create_task(self.store.cleaner.run())
            await settled()
            if trims and not model.cursors:
                managed.trim(managed.end)
                await asyncio.sleep(0)
                model.first = managed.first
                await self.store.journal.drain()
            self.files.stop_after(calls, lambda: None)
            await asyncio.wait({moving}, timeout=0.02)
            moving.cancel()
            await settled()
            self.files = self.files.crash(random.Random(calls))
            await self.start()

        self.do(main)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        async def main() -> None:
            if name in self.logs:
                await self.log(name)
                self.store.delete_log(name)
                del self.logs[name], self.open[name]
                await self.drained()

        self.do(main)

    # subscriptions -----------------------------------------------------------------------------------------------

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, share=SHARES)
    def subscribe(self, name: str, subscription: str, share: float) -> None:
        def work(managed: ManagedLedger, model: ModelLog) -> None:
            if subscription not in model.cursors:
                at = max(int(share * len(model.entries)), model.first)
                managed.open_cursor(subscription, at, properties={"at": at})
                model.cursors[subscription] = ModelCursor(set(range(at)))

        self.change(name, work)

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, again=st.booleans())
    def unsubscribe(self, name: str, subscription: str, again: bool) -> None:
        def work(managed: ManagedLedger, model: ModelLog) -> None:
            if subscription in model.cursors:
                managed.delete_cursor(subscription)
                del model.cursors[subscription]
                if again:
                    managed.open_cursor(subscription, model.first)
                    model.cursors[subscription] = ModelCursor(set(range(model.first)))

        self.change(name, work)

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, shares=st.lists(SHARES, max_size=6))
    def acknowledge(self, name: str, subscription: str, shares: list[float]) -> None:
        def work(cursor: Cursor, model: ModelCursor, log: ModelLog) -> None:
            ordinals = [int(share * len(log.entries)) for share in shares]
            cursor.acknowledge(ordinals)
            for ordinal in ordinals:
                if ordinal < len(log.entries):
                    model.acked.add(ordinal)
                    model.partial.pop(ordinal, None)

        self.on_cursor(name, subscription, work)

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, share=SHARES)
    def acknowledge_until(self, name: str, subscription: str, share: float) -> None:
        def work(cursor: Cursor, model: ModelCursor, log: ModelLog) -> None:
            ordinal = int(share * len(log.entries))
            cursor.acknowledge_until(ordinal)
            model.acked.update(range(min(ordinal + 1, len(log.entries))))
            model.partial = {o: left for o, left in model.partial.items() if o not in model.acked}

        self.on_cursor(name, subscription, work)

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, share=SHARES, keep=st.sets(st.integers(0, BATCH - 1)))
    def acknowledge_part(self, name: str, subscription: str, share: float, keep: set[int]) -> None:
        def work(cursor: Cursor, model: ModelCursor, log: ModelLog) -> None:
            ordinal = int(share * len(log.entries))
            if ordinal < len(log.entries) and log.counts[ordinal] == BATCH:
                words = (sum(1 << bit for bit in keep),) if keep else ()
                whole = cursor.acknowledge_indexes(ordinal, words, BATCH)
                if ordinal not in model.acked:
                    left = model.partial.setdefault(ordinal, set(range(BATCH)))
                    left &= keep
                    if not left:
                        model.acked.add(ordinal)
                        del model.partial[ordinal]
                assert whole == (ordinal in model.acked)

        self.on_cursor(name, subscription, work)

    @rule(name=NAMES, subscription=SUBSCRIPTIONS, share=SHARES)
    def seek(self, name: str, subscription: str, share: float) -> None:
        def work(cursor: Cursor, model: ModelCursor, log: ModelLog) -> None:
            at = max(int(share * len(log.entries)), log.first)
            cursor.reset(at)
            model.acked = set(range(at))
            model.partial.clear()

        self.on_cursor(name, subscription, work)

    # lives -------------------------------------------------------------------------------------------------------

    @rule()
    def stop(self) -> None:
        async def main() -> None:
            await self.store.close()
            await self.start()

        self.do(main)

    @rule()
    def kill(self) -> None:
        async def main() -> None:
            await self.drained()
            self.files = self.files.reopened()
            await self.start()

        self.do(main)

    @rule()
    def power_off(self) -> None:
        async def main() -> None:
            await self.drained()
            self.files = self.files.crash(random.Random(self.written))
            await self.start()

        self.do(main)

    @rule(name=NAMES, size=st.integers(1, 900), keep=SHARES)
    def power_off_in_the_middle(self, name: str, size: int, keep: float) -> None:
        """Entries without a receipt may be there or not, but only a whole front part of them."""

        async def main() -> None:
            managed, model = await self.log(name)
            durable = len(model.entries)
            tried = [b"try %d.%d " % (self.written, i) + bytes(size) for i in range(3)]
            for entry in tried:
                managed.append(entry, 1, None)
            self.files.stop_after(int(keep * 6), lambda: None)
            for _ in range(5):
                await settled()
            self.files = self.files.crash(random.Random(size))
            await self.start()
            managed, model = await self.log(name)
            found = managed.end - durable
            assert 0 <= found <= 3
            model.entries += tried[:found]
            model.counts += [1] * found
            for ordinal in range(durable, managed.end):
                model.positions.append(managed.position(ordinal))
                self.used.add((name, model.positions[-1]))

        self.do(main)

    # what always holds -------------------------------------------------------------------------------------------

    @rule(name=NAMES, share=SHARES)
    @precondition(lambda self: bool(self.logs))
    def read(self, name: str, share: float) -> None:
        async def main() -> None:
            if name in self.logs:
                managed, model = await self.log(name)
                start = max(int(share * len(model.entries)), model.first)
                assert await read(managed, start) == model.entries[start:]

        self.do(main)

    @invariant()
    def is_as_the_model_says(self) -> None:
        audit(self.store)
        for name, managed in self.store._logs.items():
            model = self.logs[name]
            assert managed.end == len(model.entries)
            assert managed.first == model.first
            assert managed.index == sum(model.counts)
            assert [managed.position(o) for o in range(managed.first, managed.end)] == model.positions[model.first :]
            assert all(managed.exact_ordinal(p) == o for o, p in enumerate(model.positions) if o >= model.first)
            assert sorted(managed.cursors) == sorted(model.cursors)
            for subscription, cursor in managed.cursors.items():
                wanted = model.cursors[subscription]
                cursor.acked.check()
                everything = range(-1, managed.end)
                assert {o for o in everything if o >= 0 and cursor.acknowledged(o)} == wanted.acked
                assert cursor.mark_delete == wanted.mark_delete
                assert {
                    o: {bit for bit in range(BATCH) if cursor.remaining_indexes(o)[0] >> bit & 1}
                    for o in range(managed.end)
                    if cursor.remaining_indexes(o)
                } == wanted.partial


def void(_: object) -> None: ...


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
