"""Which acknowledged messages retention lets go, against a rule that looks at one message after the other (4.4)."""

from __future__ import annotations

import asyncio
import random

import pytest

from magnetar.broker.topic.cleanup import retention
from magnetar.broker.topic.cleanup.retention import RetentionRule, RetentionScan, stored_ms
from magnetar.model.policies import Retention
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import FaultFileSystem

SETTINGS = StoreSettings(ledger_entries_max=8, ledger_min_rollover_ms=0)
NOW, MINUTE, MB = 10_000_000, 60_000, 1 << 20


class SetClock:
    def __init__(self) -> None:
        self.ms = 1_000

    def now_ms(self) -> int:
        return self.ms


@pytest.mark.parametrize(
    ("minutes", "megabytes", "stored", "behind", "goes"),
    [
        (0, 0, NOW, 0, True),
        (-1, -1, 0, 1 << 60, False),
        (5, -1, NOW - 5 * MINUTE - 1, 0, True),
        (5, -1, NOW - 5 * MINUTE, 1 << 60, False),
        (5, -1, NOW - 5 * MINUTE + 1, 1 << 60, False),
        (-1, 3, 0, 3 * MB - 1, False),
        (-1, 3, NOW, 3 * MB, True),
        (-1, 3, NOW, 3 * MB + 1, True),
        (-1, 0, NOW, 0, True),
        (0, -1, NOW, 0, True),
        (0, -1, NOW + 1, 1 << 60, False),
        (5, 3, NOW, 3 * MB, True),
        (5, 3, NOW - 5 * MINUTE - 1, 0, True),
        (5, 3, NOW - 5 * MINUTE, 3 * MB - 1, False),
        (1, 1, NOW - MINUTE, MB - 1, False),
    ],
)
def test_a_message_goes_when_it_is_older_or_has_that_much_behind_it(
    minutes: int, megabytes: int, stored: int, behind: int, goes: bool
) -> None:
    """-1 is no limit and 0 keeps nothing; the limit that is exceeded first decides (rules 4.4.1, 4.4.2)."""
    assert RetentionRule.of(Retention(minutes, megabytes), NOW).lets_go(stored, behind) == goes


@pytest.mark.parametrize(
    ("published", "closed", "stored"),
    [
        (99, 0, 100), (100, 0, 100), (150, 0, 150), (200, 0, 200), (201, 0, 200),
        (99, 180, 100), (180, 180, 180), (181, 180, 180), (1 << 62, 180, 180), (1 << 62, 0, 200),
    ],
)  # fmt: skip
def test_a_message_is_as_old_as_its_producer_says_within_the_life_of_its_ledger(
    published: int, closed: int, stored: int
) -> None:
    """Clocks of producers may be wrong (rule 4.4.4)."""
    ledger = Ledger(1, 0, 0, 100)
    ledger.closed_ms = closed
    assert stored_ms(published, ledger, 200) == stored


class Kept:
    """A log of entries with these publish times and paddings, a ledger of eight after the other."""

    def __init__(self, rng: random.Random) -> None:
        self.clock = SetClock()
        self.store = LocalLedgerStore(FaultFileSystem(random.Random(0)), self.clock, SETTINGS)
        self.store.open()
        self.log: ManagedLedger = self.store.open_log("t")
        self.sizes: list[int] = []
        self.times: list[int] = []
        self.rng = rng

    async def fill(self, count: int, *, together: bool = False) -> None:
        """``together``: several are written, and so read, at once."""
        for _ in range(count):
            self.clock.ms += self.rng.choice((0, 1, 7))
            time = self.clock.ms + self.rng.choice((-900, -3, 0, 0, 5))
            entry = build_entry(EntryMetadata("p", 0, max(time, 1)), bytes(self.rng.choice((1, 10, 200))))
            self.log.append(entry, 1, None)
            if not together or self.rng.random() < 0.3:
                await self.store.journal.drain()
            self.sizes.append(len(entry))
            self.times.append(max(time, 1))
        await self.store.journal.drain()

    def expected(self, rule: RetentionRule, consumed: int, now_ms: int) -> tuple[int, int]:
        at = self.log.first
        while at < consumed:
            ledger = self.log.table.holding(at)
            when = max(ledger.opened_ms, min(self.times[at], ledger.closed_ms or now_ms))
            old = rule.cutoff_ms is not None and when < rule.cutoff_ms
            if not old and (rule.size is None or sum(self.sizes[at + 1 :]) < rule.size):
                break
            at += 1
        ledgers = self.log.table.ledgers
        begun = next((one.ordinal for one in reversed(ledgers) if one.ordinal <= at), 0)
        return at, sum(self.sizes[begun:at])


@pytest.mark.parametrize("seed", range(25))
def test_a_scan_stops_at_the_first_message_that_stays(seed: int) -> None:
    """Where ledgers go as a whole they are not read, which changes nothing of what goes."""

    async def main() -> None:
        rng = random.Random(seed)
        kept = Kept(rng)
        await kept.fill(rng.choice((1, 8, 9, 16, 40)), together=True)
        total, now_ms = sum(kept.sizes), kept.clock.ms + rng.choice((0, 5))
        for _ in range(12):
            cutoff = rng.choice((None, rng.choice(kept.times), rng.choice(kept.times) + 1, now_ms + 1))
            size = rng.choice(
                (None, 0, total, rng.randint(0, total), sum(kept.sizes[rng.randrange(len(kept.sizes)) :]))
            )
            consumed = rng.choice((0, 1, 8, 16, len(kept.sizes), rng.randint(0, len(kept.sizes))))
            consumed = min(consumed, len(kept.sizes))
            rule = RetentionRule(cutoff, size)
            found = await RetentionScan(kept.log, rule, now_ms).to(consumed)
            assert found == kept.expected(rule, consumed, now_ms), (rule, consumed)
        await kept.store.close()

    asyncio.run(main())


def test_a_pass_reads_no_more_than_it_may_and_the_next_one_goes_on_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers that go as a whole are not read, so they count for nothing."""

    async def main() -> None:
        kept = Kept(random.Random(1))
        await kept.fill(24)
        rule = RetentionRule(0, sum(kept.sizes[20:]))
        for budget, wanted in ((1, 17), (kept.sizes[16], 17), (kept.sizes[16] + 1, 18), (1 << 20, 20)):
            monkeypatch.setattr(retention, "BUDGET_BYTES", budget)
            assert await RetentionScan(kept.log, rule, 1 << 40).to(24) == (wanted, sum(kept.sizes[16:wanted]))
        await kept.store.close()

    asyncio.run(main())


def test_a_pass_that_ends_with_the_last_message_of_a_ledger_keeps_from_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the next one is gone then, however many bytes the pass has read."""

    async def main() -> None:
        kept = Kept(random.Random(1))
        await kept.fill(12)
        first, second = kept.log.table.ledgers
        assert second.ordinal == 8
        rule = RetentionRule(first.closed_ms, None)
        kept.times[:] = [1] * 12
        monkeypatch.setattr(retention, "_published", lambda entry: 1)
        for budget in (sum(kept.sizes[:7]) + 1, sum(kept.sizes[:8]), 1 << 20):
            monkeypatch.setattr(retention, "BUDGET_BYTES", budget)
            found = await RetentionScan(kept.log, rule, 1 << 40).to(12)
            assert found == kept.expected(rule, 12, 1 << 40) == (8, 0)
        await kept.store.close()

    asyncio.run(main())
