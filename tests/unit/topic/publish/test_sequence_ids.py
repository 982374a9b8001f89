"""What deduplication remembers, against a log kept as a list: nothing twice, nothing lost, through failed writes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from magnetar.broker.topic.publish.sequence_ids import SequenceIds, Verdict

NAMES = st.sampled_from(["p", "q", "ü\udcff"])


class Machine(RuleBasedStateMachine):
    """Groups are written one after the other; while one is, the next fills."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = SequenceIds()
        self.durable: list[tuple[str, int, int]] = []
        """Entries on disk: name, first and last id."""
        self.writing: list[tuple[str, int, int]] | None = None
        self.open: list[tuple[str, int, int]] = []
        self.snapshot = b""
        self.changes: list[bytes] = []
        self.change: bytes | None = None

    @rule(name=NAMES, first=st.integers(-1, 12), more=st.integers(0, 4))
    def send(self, name: str, first: int, more: int) -> None:
        last = first + more
        verdict = self.ids.judge(name, first, last)
        on_disk = max((end for who, _, end in self.durable if who == name), default=-2)
        flying = max((end for who, _, end in [*(self.writing or ()), *self.open] if who == name), default=-2)
        if verdict is Verdict.NEW:
            assert first > max(on_disk, flying)
            self.ids.push(name, last)
            self.open.append((name, first, last))
        elif verdict is Verdict.DUPLICATE:
            assert last <= on_disk, "something of it is not durable"
        elif verdict is Verdict.OVERLAP:
            assert first <= on_disk < last
            assert last > flying
        else:
            assert on_disk < last
            assert flying >= first

    @rule()
    @precondition(lambda self: self.writing is None)
    def write(self) -> None:
        change = self.ids.changes()
        self.change = None if change is None else change.data
        self.writing, self.open = self.open, []

    @rule()
    @precondition(lambda self: self.writing is not None)
    def succeed(self) -> None:
        self.durable += self.writing or ()
        self.writing = None
        if self.change is not None:
            self.changes.append(self.change)
            self.ids.durable()

    @rule()
    @precondition(lambda self: self.writing is not None)
    def fail(self) -> None:
        self.writing = None
        self.open = []
        self.ids.lost()

    @rule()
    def checkpoint(self) -> None:
        self.snapshot = self.ids.snapshot()
        self.changes = []

    @rule()
    def crash(self) -> None:
        """Between two writes, or in the middle of one that did not make it."""
        self.writing = None
        self.open = []
        self.ids = SequenceIds(self.snapshot or None, self.changes)

    @rule(name=NAMES)
    @precondition(lambda self: self.writing is None and not self.open)
    def forget(self, name: str) -> None:
        self.ids.forget([name])
        self.write()
        self.succeed()
        self.durable = [entry for entry in self.durable if entry[0] != name]

    @invariant()
    def knows_what_is_durable(self) -> None:
        for name in ("p", "q", "ü\udcff"):
            assert self.ids.last(name) == max((end for who, _, end in self.durable if who == name), default=-1)
        flying = {name for name, _, _ in [*(self.writing or ()), *self.open]}
        assert {name for name in ("p", "q", "ü\udcff") if not self.ids.settled(name)} == flying


TestSequenceIds = Machine.TestCase
TestSequenceIds.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def test_those_not_used_for_longest_are_oldest() -> None:
    ids = SequenceIds()
    for name in ("a", "b", "c", "a"):
        ids.push(name, ids.last(name) + 1)
        ids.changes()
        ids.durable()
    assert list(ids) == ["b", "c", "a"]
    assert ids.oldest(2, lambda name: name == "c") == ["b", "a"]
    again = SequenceIds(ids.snapshot())
    assert list(again) == ["b", "c", "a"]
    assert again.last("a") == 1


def test_forgetting_that_was_not_written_is_written_again() -> None:
    ids = SequenceIds()
    ids.push("a", 1)
    written = [ids.changes()]
    ids.durable()
    ids.forget(["a"])
    ids.changes()
    ids.lost()
    written.append(ids.changes())
    ids.durable()
    assert ids.changes() is None
    assert list(SequenceIds(None, [change.data for change in written if change is not None])) == []
