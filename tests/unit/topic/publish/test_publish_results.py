"""What became of entries that several producers sent in turn: a receipt each, and everything counted once (3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.publish.publish_results import PublishResults
from magnetar.model.errors import PersistenceError
from magnetar.storage.log.write_group import PendingExtent

LEDGER, FIRST = 7, 40


class Connection:
    """Notes every entry that it hears of."""

    def __init__(self) -> None:
        self.receipted: list[tuple[int, int]] = []
        """Sequence id and number of the entry."""
        self.uncounted = 0
        self.refused: list[int] = []

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
        self.producers = [
            SimpleNamespace(open=rng.random() < 0.6, msg_in=0, bytes_in=0, connection=Connection()) for _ in range(3)
        ]
        size = rng.choice((1, 2, 5, 12))
        self.by = [rng.choice(self.producers[: rng.randint(1, 3)]) for _ in range(size)]
        self.sizes = [rng.randint(1, 9) for _ in self.by]
        self.messages = [rng.randint(1, 4) for _ in self.by] if rng.random() < 0.5 else None
        extent = SimpleNamespace(
            ledger=LEDGER, entry=FIRST, entries=[bytes(n) for n in self.sizes], size=sum(self.sizes),
            counts=self.messages, tags=[PendingEntry(cast("Any", who), i, 0) for i, who in enumerate(self.by)],
        )  # fmt: skip
        self.extent = cast("PendingExtent", extent)
        self.closed: list[bool] = []
        self.results = PublishResults(cast("Producers", SimpleNamespace(close_all=lambda: self.closed.append(True))))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_durable_is_receipted_to_who_is_there_and_counted_for_all(seed: int) -> None:
    written = Written(seed)
    results, counts = written.results, written.messages or [1] * len(written.by)
    results.durable(written.extent)
    assert (results.msg_in, results.bytes_in) == (sum(counts), sum(written.sizes))
    for producer in written.producers:
        mine = [i for i, who in enumerate(written.by) if who is producer]
        heard = producer.connection
        assert producer.msg_in == sum(counts[i] for i in mine)
        assert producer.bytes_in == sum(written.sizes[i] for i in mine)
        assert heard.receipted == ([(i, FIRST + i) for i in mine] if producer.open else [])
        assert heard.uncounted == (0 if producer.open else len(mine)), "or its connection waits for ever"
    assert not written.closed


@pytest.mark.parametrize("seed", range(20))
def test_what_the_disk_refused_is_an_error_to_who_is_there_and_all_have_to_come_again(seed: int) -> None:
    written = Written(seed)
    written.results.failed(written.extent, PersistenceError("refused"))
    for producer in written.producers:
        mine = [i for i, who in enumerate(written.by) if who is producer]
        assert producer.connection.refused == (mine if producer.open else [])
        assert producer.connection.uncounted == (0 if producer.open else len(mine))
        assert (producer.msg_in, producer.bytes_in) == (0, 0)
    assert (written.closed, written.results.msg_in) == ([True], 0)
