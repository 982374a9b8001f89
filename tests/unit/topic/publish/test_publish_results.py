"""What became of entries that several producers sent in turn: a receipt each, and everything counted once (3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.topic.publish.producer import PendingEntry, Producer, ProducerInfo
from magnetar.broker.topic.publish.producers import ProducerLimits, Producers
from magnetar.broker.topic.publish.publish_results import PublishResults
from magnetar.broker.topic.publish.topic_epoch import MemoryEpoch
from magnetar.broker.topic.publish.write_stats import NOTHING
from magnetar.model.errors import PersistenceError
from magnetar.protocol.commands import ProducerAccessMode
from magnetar.storage.log.write_group import PendingExtent, WriteTimes

LEDGER, FIRST = 7, 40


class Connection:
    """Notes every entry that it hears of."""

    def __init__(self) -> None:
        self.receipted: list[tuple[int, int]] = []
        """Sequence id and number of the entry."""
        self.uncounted = 0
        self.refused: list[int] = []
        self.session = self

    def close(self) -> None: ...

    def receipts(self, ledger: int, entry: int, results: Sequence[PendingEntry]) -> None:
        assert ledger == LEDGER
        self.receipted += [(result.sequence_id, entry + i) for i, result in enumerate(results)]

    def dropped(self, count: int) -> None:
        self.uncounted += count

    def failed(self, results: Sequence[PendingEntry], error: PersistenceError) -> None:
        self.refused += [result.sequence_id for result in results]


class Written:
    """A group of entries of some producers, of which some are gone by the time that it is durable."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.open = Producers("t", MemoryEpoch())
        self.producers = [self._producer(number, there=rng.random() < 0.6) for number in range(3)]
        size = rng.choice((1, 2, 5, 12))
        self.by = [rng.choice(self.producers[: rng.randint(1, 3)]) for _ in range(size)]
        self.sizes = [rng.randint(1, 9) for _ in self.by]
        self.messages = [rng.randint(1, 4) for _ in self.by] if rng.random() < 0.5 else None
        self.extent = extent = PendingExtent(cast("Any", None), LEDGER, FIRST, 0, 0, 0)
        extent.entries, extent.size = [bytes(n) for n in self.sizes], sum(self.sizes)
        extent.counts, extent.tags = self.messages, [PendingEntry(who, i, 0) for i, who in enumerate(self.by)]
        self.results = PublishResults(self.open)

    def _producer(self, number: int, *, there: bool) -> Producer:
        info = ProducerInfo(number, f"p{number}", False, 0, ProducerAccessMode.Shared, False, "", "", "", {}, False)
        producer = Producer(info, cast("Any", SimpleNamespace(append=None)), cast("Any", Connection()))
        if there:
            self.open.admit(producer, None, ProducerLimits(), lambda error: None)
        else:
            producer.close()
        return producer

    @property
    def there(self) -> list[bool]:
        """Which of the producers are open."""
        return [producer.open for producer in self.producers]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_durable_is_receipted_to_who_is_there_and_counted_for_all(seed: int) -> None:
    written = Written(seed)
    results, counts, there = written.results, written.messages or [1] * len(written.by), written.there
    results.durable(written.extent)
    assert (results.msg_in, results.bytes_in) == (sum(counts), sum(written.sizes))
    for producer in written.producers:
        mine = [i for i, who in enumerate(written.by) if who is producer]
        heard: Any = producer.connection
        assert producer.msg_in == sum(counts[i] for i in mine)
        assert producer.bytes_in == sum(written.sizes[i] for i in mine)
        assert heard.receipted == ([(i, FIRST + i) for i in mine] if producer.open else [])
        assert heard.uncounted == (0 if producer.open else len(mine)), "or its connection waits for ever"
    assert written.there == there


@pytest.mark.parametrize("seed", range(20))
def test_what_the_disk_refused_is_an_error_to_who_is_there_and_all_have_to_come_again(seed: int) -> None:
    written = Written(seed)
    there = written.there
    written.results.failed(written.extent, PersistenceError("refused"))
    for producer, was_open in zip(written.producers, there, strict=True):
        mine, heard = [i for i, who in enumerate(written.by) if who is producer], cast("Any", producer.connection)
        assert heard.refused == (mine if was_open else [])
        assert heard.uncounted == (0 if was_open else len(mine))
        assert (producer.msg_in, producer.bytes_in) == (0, 0)
    assert (written.there, len(written.open), written.results.msg_in) == ([False] * 3, 0, 0)


def test_a_topic_that_rests_keeps_no_counts_and_shows_zeros() -> None:
    written = Written(1)
    results = written.results
    results.turn()
    assert results.period is None, "nothing came yet"
    results.stored(written.extent, WriteTimes(7.0, 0.7))
    assert results.period == NOTHING
    results.turn()
    shown = results.period
    assert shown is not None
    assert sum(shown.sizes[:-1]) == len(written.by)
    results.turn()
    assert results.written is None
    assert results.period == NOTHING
    results.stored(written.extent, WriteTimes(7.0, 0.7))
    results.turn()
    assert results.period == shown
