"""A data directory that is given beside a broker's address is that broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from magnetar.client.read_position import ReadPosition
from magnetar.jobs.reader import unit_reader
from magnetar.jobs.reader.unit_reader import Access, Entries, Missing, Unit, check_directory, entries, units
from magnetar.model.errors import InvalidValueError
from tests.support.loop_turns import settled
from tests.unit.jobs.stores import T, append, message, open_store


async def store_of(directory: Path, sent: Sequence[bytes]) -> None:
    store = open_store(directory)
    await append(store, store.open_log(T), sent, 3)
    await settled()
    await store.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """What the broker shows: that of the directory in the list; nothing if there is none."""
    shown: list[Access] = []

    def by_protocol(_: Access, topic: str, start: ReadPosition, stop: ReadPosition) -> Iterator[Entries | Missing]:
        if not shown:
            yield Missing(start, stop, "trimmed or deleted")
        for unit in units(shown[0], topic, start, stop) if shown else ():
            yield from entries(shown[0], unit)

    monkeypatch.setattr(unit_reader, "_by_protocol", by_protocol)
    return shown


def test_a_directory_of_another_broker_is_refused(tmp_path: Path, asked: list[Access]) -> None:
    """Both have the topic and the ledger, as two young brokers do."""
    first, second = (tmp_path / name for name in "ab")
    asyncio.run(store_of(first, [message(number) for number in range(25)]))
    asyncio.run(store_of(second, [message(number, producer="other") for number in range(25)]))
    found = units(Access(directory=str(first)), T)
    both = Access(url="pulsar://here", directory=str(first))
    check_directory(both, found)
    asked.append(Access(directory=str(first)))
    check_directory(both, found)
    asked[0] = Access(directory=str(second))
    with pytest.raises(
        InvalidValueError, match=r"a is not the directory of the broker at pulsar://here: .* \d+:\d+ there"
    ):
        check_directory(both, found)
    check_directory(Access(directory=str(first)), found)
    check_directory(both, [Unit(T, ReadPosition(1, 0), ReadPosition(1, 5), 0)])
