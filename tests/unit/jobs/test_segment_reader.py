"""Entries read straight from a store's segments are the store's own, whatever the store does meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.read_position import START, ReadPosition
from magnetar.jobs.reader.snapshot import DirectorySnapshot, ledgers_of
from magnetar.jobs.reader.topic_ledgers import read_directory
from magnetar.jobs.reader.unit_reader import Access, Missing, read, tasks_of, units
from magnetar.model.errors import InvalidValueError, TopicNotFoundError
from magnetar.storage.backends.file_names import segment_numbers
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.store import LedgerStore
from magnetar.storage.store_settings import StoreSettings
from magnetar.transactions.feature_state import TRANSACTIONS, TransactionFeatureState
from tests.support.loop_turns import settled
from tests.unit.jobs.stores import T, append, message, open_store, stored


def expected(log: ManagedLedger, sent: list[bytes], first: int = 0) -> list[tuple[int, int, bytes]]:
    return [(*log.position(ordinal), sent[ordinal]) for ordinal in range(first, len(sent))]


def snapshot(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "ledgers").iterdir()}


def direct(directory: Path) -> Access:
    return Access(directory=str(directory))


async def filled(directory: Path, count: int, group: int = 3) -> tuple[LedgerStore, ManagedLedger, list[bytes]]:
    """A store with one topic whose entries lie in many segments and ledgers, among those of another."""
    store = open_store(directory)
    log, other = store.open_log(T), store.open_log("persistent://public/default/u")
    sent = [message(number, 20 + number % 60) for number in range(count)]
    for at in range(0, count, group):
        await append(store, log, sent[at : at + group], group)
        await append(store, other, [message(at, 200)])
    await settled()
    return store, log, sent


async def emptied(store: LedgerStore, segments: set[int]) -> None:
    """What lives in these segments is moved, and they are removed."""
    logs = {log.id: log for log in store.logs()}
    for number in sorted(segments):
        await store.cleaner._empty(number, logs)
    for _ in range(3):  # both kept checkpoints have to know of it
        store.journal.roll(lambda: None, lambda error: None)
        await store.journal.drain()
        await settled()
    await store.keeper.remove_dead()


@pytest.mark.parametrize("index", [True, False])
def test_entries_that_the_broker_moved_are_read_where_they_are(tmp_path: Path, index: bool) -> None:
    """They are found before and after a job has planned, also where moved extents stand after younger ones."""

    async def story() -> None:
        store, log, sent = await filled(tmp_path, 120)
        planned = units(direct(tmp_path), "t")
        want = stored(direct(tmp_path), planned)
        assert not want[1]
        segments = {_segment(unit) for unit in planned}
        oldest = set(sorted(segments)[:3])
        await emptied(store, oldest)
        sent += [message(number) for number in range(120, 130)]
        await append(store, log, sent[120:])
        await emptied(store, set(sorted(segments - oldest)[1:2]))
        assert all(not (tmp_path / "ledgers" / segment_name(number)).exists() for number in oldest)
        if not index:
            await store.close()
            for number in segment_numbers(snapshot(tmp_path)):
                (tmp_path / "ledgers" / index_name(number)).unlink()
        assert stored(direct(tmp_path), planned) == want, "planned before"
        found, missing = stored(direct(tmp_path), units(direct(tmp_path), "t"))
        assert not missing
        assert found[: len(want[0])] == want[0]
        assert found == expected(log, sent[: len(found)])

    asyncio.run(story())


@pytest.mark.parametrize("group", [1, 3, 40])
def test_a_stopped_store_is_read_as_it_was_written(tmp_path: Path, group: int) -> None:
    async def story() -> None:
        store, log, sent = await filled(tmp_path, 120, group)
        want = expected(log, sent)
        await store.close()
        before = snapshot(tmp_path)
        assert stored(direct(tmp_path), units(direct(tmp_path), "t")) == (want, [])
        assert snapshot(tmp_path) == before

    asyncio.run(story())


def test_a_running_store_is_read_up_to_its_last_write_but_one(tmp_path: Path) -> None:
    """The last block may not be durable yet, so no reader may see it."""

    async def story() -> None:
        store = open_store(tmp_path)
        log = store.open_log(T)
        sent = [message(number) for number in range(37)]
        for count in range(1, len(sent) + 1):
            await append(store, log, sent[count - 1 : count])
            found, missing = stored(direct(tmp_path), units(direct(tmp_path), "t")) if count > 1 else ([], [])
            assert not missing
            assert found == expected(log, sent[: len(found)])
            assert count - 1 <= len(found) <= count
        await store.close()

    asyncio.run(story())


def test_a_write_that_is_under_way_is_not_damage(tmp_path: Path) -> None:
    async def story() -> None:
        store, log, sent = await filled(tmp_path, 30)
        newest = tmp_path / "ledgers" / segment_name(segment_numbers(snapshot(tmp_path))[-1])
        whole = newest.read_bytes()
        for cut in range(len(whole) - 300, len(whole), 7):
            newest.write_bytes(whole[:cut])
            found = read_directory(tmp_path)
            assert not found.damage
            assert 20 <= found.logs[T].end <= 30
        newest.write_bytes(whole)
        assert stored(direct(tmp_path), units(direct(tmp_path), "t"))[0] == expected(log, sent[:30])
        await store.close()

    asyncio.run(story())


def test_segments_that_the_broker_removes(tmp_path: Path) -> None:
    """Opened segments stay readable; one that is gone before it is opened is named exactly."""

    async def story() -> None:
        store, log, sent = await filled(tmp_path, 120)
        want = expected(log, sent)
        found = units(direct(tmp_path), "t")
        log.trim(60)
        other = store.find_log("persistent://public/default/u")
        assert other is not None
        other.trim(other.end)
        for _ in range(3):  # both kept checkpoints have to know of it
            await append(store, log, [message(900, 3000)], 1)
            await settled()
        gone = [unit for unit in found if not (tmp_path / "ledgers" / segment_name(_segment(unit))).exists()]
        assert gone
        left, missing = stored(direct(tmp_path), found)
        assert [(one.start, one.stop) for one in missing] == [(unit.start, unit.stop) for unit in gone]
        assert all("was removed by the broker" in one.why for one in missing)
        lost = {at for one in missing for at in want if one.start[:2] <= at[:2] < one.stop[:2]}
        assert left == [at for at in want if at not in lost]
        with pytest.raises(DataLossError, match=f"{T}: {gone[0].start.ledger}:{gone[0].start.entry} to before"):
            list(read(direct(tmp_path), gone[0]))
        # a new snapshot begins after what was trimmed
        again, missing = stored(direct(tmp_path), units(direct(tmp_path), "t"))
        assert not missing
        assert again[: len(want) - log.first] == want[log.first :]
        await store.close()

    asyncio.run(story())


def _segment(unit: Any) -> int:
    return int(unit.piece.segment)


def test_damage_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    async def story() -> None:
        store, log, sent = await filled(tmp_path, 120)
        want = expected(log, sent)
        await store.close()
        number = segment_numbers(snapshot(tmp_path))[2]
        path = tmp_path / "ledgers" / segment_name(number)
        data = bytearray(path.read_bytes())
        at = data.index(b"-....")
        data[at + 2] ^= 1
        path.write_bytes(data)
        found, missing = stored(direct(tmp_path), units(direct(tmp_path), "t"))
        assert len(missing) == 1
        assert f"the checksum of the extent in {segment_name(number)}" in missing[0].why
        lost = [one for one in want if missing[0].start[:2] <= one[:2] < missing[0].stop[:2]]
        assert 1 <= len(lost) <= 3
        assert found == [one for one in want if one not in lost]
        # without its index the segment is walked through, and the damaged block is left out
        (tmp_path / "ledgers" / index_name(number)).unlink()
        walked, missing = stored(direct(tmp_path), units(direct(tmp_path), "t"))
        lost = [one for one in want if any(gap.start[:2] <= one[:2] < gap.stop[:2] for gap in missing)]
        assert 1 <= len(lost) <= 3
        assert walked == [one for one in want if one not in lost]

    asyncio.run(story())


def test_entries_that_a_recovery_does_not_find_are_missing(tmp_path: Path) -> None:
    """The damage is in a segment that no checkpoint covers yet."""

    async def story() -> None:
        store = open_store(
            tmp_path, StoreSettings(segment_bytes=1 << 20, ledger_entries_max=10, ledger_min_rollover_ms=0)
        )
        log = store.open_log(T)
        await store.journal.drain()
        sent = [message(number) for number in range(40)]
        await append(store, log, sent, 5)
        await append(store, log, [message(40)])
        path = tmp_path / "ledgers" / segment_name(1)
        data = bytearray(path.read_bytes())
        data[data.index(sent[17])] ^= 1
        path.write_bytes(data)
        found, missing = stored(direct(tmp_path), units(direct(tmp_path), "t"))
        want = expected(log, sent)
        lost = want[15][0]
        assert [(one.start, one.stop) for one in missing] == [(ReadPosition(lost, 5), ReadPosition(lost, 10))]
        assert found == want[:15] + want[20:]
        await store.close()

    asyncio.run(story())


def test_an_index_is_not_needed(tmp_path: Path) -> None:
    async def story() -> None:
        store, log, sent = await filled(tmp_path, 60)
        want = expected(log, sent)
        await store.close()
        for name in snapshot(tmp_path):
            if name.endswith(".index"):
                (tmp_path / "ledgers" / name).unlink()
        before = snapshot(tmp_path)
        assert stored(direct(tmp_path), units(direct(tmp_path), "t")) == (want, [])
        assert snapshot(tmp_path) == before

    asyncio.run(story())


def test_what_transactions_hide_is_left_out(tmp_path: Path) -> None:
    """Aborted entries and markers never come, and nothing from an open transaction's first entry on."""

    async def story() -> None:
        store, log, sent = await filled(tmp_path, 30)
        feature_state = log.feature_state(TRANSACTIONS)
        beside = feature_state.open(TransactionFeatureState)
        beside.note(["w", 0, 1, 3, 6])
        beside.note(["e", 0, 1, 0, 8])
        beside.note(["w", 0, 2, 20, 22])
        feature_state.touch()
        await append(store, log, [message(30)])
        sent.append(message(30))
        await append(store, log, [message(31)])
        found, missing = stored(direct(tmp_path), units(direct(tmp_path), "t"))
        assert not missing
        assert found == [
            one for number, one in enumerate(expected(log, sent)) if number < 20 and number not in (3, 4, 5, 8)
        ]
        await store.close()

    asyncio.run(story())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=12),
    st.integers(1000, 6000),
    st.integers(0, 80),
    st.integers(0, 80),
    st.booleans(),
)
def test_any_range_of_any_store(
    tmp_path: Path, groups: list[int], segment: int, one: int, two: int, close: bool
) -> None:
    """Any range equals that of the model: the list of what was sent, cut at two places."""
    shutil.rmtree(tmp_path / "ledgers", ignore_errors=True)

    async def story() -> None:
        store = open_store(
            tmp_path,
            StoreSettings(segment_bytes=segment, cache_bytes=1, ledger_entries_max=7, ledger_min_rollover_ms=0),
        )
        log = store.open_log(T)
        sent = [message(number, 10 + number * 7 % 90) for number in range(sum(groups))]
        await store.journal.drain()
        at = 0
        for group in groups:
            await append(store, log, sent[at : at + group], group)
            at += group
        await settled()
        want = expected(log, sent)
        if close:
            await store.close()
        first, stop = sorted((min(one, len(sent) - 1), min(two, len(sent) - 1)))
        start, end = ReadPosition(*want[first][:2]), ReadPosition(*want[stop][:2])
        found, missing = stored(direct(tmp_path), units(direct(tmp_path), "t", start, end))
        visible = len(stored(direct(tmp_path), units(direct(tmp_path), "t"))[0])
        assert not missing
        assert len(sent) - groups[-1] <= visible <= len(sent)
        assert found == want[first : min(stop, visible)]
        if not close:
            await store.close()

    asyncio.run(story())


def test_pieces_are_cut_and_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        store, log, sent = await filled(tmp_path, 120, 40)
        want = expected(log, sent)
        await store.close()
        whole = units(direct(tmp_path), "t")
        monkeypatch.setattr("magnetar.jobs.reader.units.UNIT_BYTES", 300)
        cut = units(direct(tmp_path), "t")
        assert len(cut) > len(whole)
        assert stored(direct(tmp_path), cut) == (want, [])
        for least in (1, 4, 1000):
            tasks = tasks_of(cut, least)
            assert [unit for task in tasks for unit in task] == cut
            assert len(tasks) >= min(least, len(cut)) // 2

    asyncio.run(story())


def test_bad_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="is no data directory of a magnetar broker"):
        units(direct(tmp_path), "t")
    with pytest.raises(InvalidValueError, match="neither a broker's address nor a data directory"):
        units(Access(), "t")

    async def story() -> None:
        store, _, _ = await filled(tmp_path, 3)
        await store.close()

    asyncio.run(story())
    with pytest.raises(TopicNotFoundError, match="did you mean persistent://public/default/t"):
        units(direct(tmp_path), "tt")
    assert ledgers_of(tmp_path) == ledgers_of(tmp_path / "ledgers")


def test_a_store_that_runs_is_not_locked_out(tmp_path: Path) -> None:
    """A reader takes no lock: a broker can start meanwhile."""

    async def story() -> None:
        store, _, _ = await filled(tmp_path, 3)
        await store.close()
        with DirectorySnapshot(ledgers_of(tmp_path)):
            files = OsFileSystem(str(tmp_path / "ledgers"))
            files.lock()
            files.unlock()

    asyncio.run(story())


def test_rows_without_values(tmp_path: Path) -> None:
    async def story() -> None:
        store, _, sent = await filled(tmp_path, 20)
        await store.close()
        (unit, *_) = units(direct(tmp_path), "t", START)
        batches = list(read(direct(tmp_path), unit, ["__sequenceId", "__entryId"], values=False))
        assert batches[0].schema.names == ["__sequenceId", "__entryId"]
        numbers = [number for batch in batches for number in batch.column("__sequenceId").to_pylist()]
        assert numbers == list(range(len(numbers)))
        assert len(sent) >= len(numbers) > 0

    asyncio.run(story())


def test_missing_says_where() -> None:
    assert str(Missing(ReadPosition(3, 4), ReadPosition(3, 9), "why")) == "3:4 to before 3:9: why"
