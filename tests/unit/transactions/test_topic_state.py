"""What a topic keeps of transactions, through lost groups and crashes, against a list of entries (rules 9.9 to 9.12).

The model is the log itself: what stands at each ordinal, and what became of each transaction. A group is written, lost
or cut off by a crash; a restart has a snapshot of some moment and the changes after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from magnetar.broker.topic.dispatch.dispatch_filter import last_visible
from magnetar.broker.topic.transactions.isolation import ReadCommittedRule
from magnetar.protocol.commands.ids import TxnId
from magnetar.storage.ledgers.ranges import AckedSet
from magnetar.transactions.buffer import NO_MARKER, TransactionBuffer
from magnetar.transactions.feature_state import TransactionFeatureState
from magnetar.transactions.operations import replay
from magnetar.transactions.pending_acks import TransactionAcks
from magnetar.transactions.topic_state import TopicState

TXNS = st.integers(0, 4)


@dataclass
class Model:
    """``log``: the transaction of each entry, "plain" or "marker"."""

    log: list[int | str] = field(default_factory=list)
    ended: dict[int, bool] = field(default_factory=dict)
    reserved: dict[int, set[int]] = field(default_factory=dict)
    owed: dict[int, set[int]] = field(default_factory=dict)

    def copy(self) -> Model:
        reserved = {txn: set(held) for txn, held in self.reserved.items()}
        return Model(list(self.log), dict(self.ended), reserved, {t: set(held) for t, held in self.owed.items()})

    def end(self, txn: int, commit: bool) -> None:
        self.ended[txn] = commit
        held = self.reserved.pop(txn, None)
        if commit and held is not None:
            self.owed[txn] = held


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = TransactionFeatureState(None, ())
        self.durable, self.now = Model(), Model()
        self.snapshot: bytes | None = None
        self.changes: list[bytes] = []
        self.generation = 0

    def txn(self, number: int) -> TxnId:
        """Ended ones never come back."""
        while number in self.now.ended:
            number += 5
        return TxnId(0, number)

    # what happens --------------------------------------------------------------------------------------------

    @rule()
    def plain(self) -> None:
        self.now.log.append("plain")

    @rule(number=TXNS)
    def send(self, number: int) -> None:
        txn, ordinal = self.txn(number), len(self.now.log)
        self.real.note(["w", 0, txn.least, ordinal, ordinal + 1])
        self.now.log.append(txn.least)

    @rule(number=TXNS, ordinals=st.sets(st.integers(0, 9), min_size=1))
    def reserve(self, number: int, ordinals: set[int]) -> None:
        txn = self.txn(number)
        free = ordinals - {o for held in (*self.now.reserved.values(), *self.now.owed.values()) for o in held}
        if free:
            self.real.note(["p", "s", 0, txn.least, TransactionAcks(set(free)).encode()])
            self.now.reserved.setdefault(txn.least, set()).update(free)

    @rule(number=TXNS, commit=st.booleans(), sent=st.booleans())
    def end(self, number: int, commit: bool, sent: bool) -> None:
        txn = self.txn(number)
        sent = sent or txn.least in self.now.log
        self.real.note(["e", 0, txn.least, int(commit), len(self.now.log) if sent else None])
        if sent:
            self.now.log.append("marker")
        self.now.end(txn.least, commit)

    @rule()
    def hand_over(self) -> None:
        for txn in list(self.durable.owed):
            self.real.note(["d", "s", 0, txn])
            self.now.owed.pop(txn, None)

    # what the journal does -----------------------------------------------------------------------------------

    @rule()
    def write(self) -> None:
        change = self.real.changes()
        if change is not None:
            self.changes.append(change.data)
        self.real.durable()
        self.durable = self.now.copy()

    @rule(while_writing=st.booleans())
    def lose(self, while_writing: bool) -> None:
        """Entries and markers are gone, decisions stay."""
        if while_writing:
            self.real.changes()
        self.real.lost()
        del self.now.log[len(self.durable.log) :]

    @rule()
    def checkpoint(self) -> None:
        self.snapshot, self.changes = self.real.snapshot(), []

    @rule(while_writing=st.booleans())
    def crash(self, while_writing: bool) -> None:
        if while_writing:
            self.real.changes()
        self.real = TransactionFeatureState(self.snapshot, self.changes)
        self.now = self.durable.copy()

    # what has to hold ----------------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        state, model = self.real.settled, self.durable
        state.buffer.check()
        open_at = [o for o, what in enumerate(model.log) if isinstance(what, int) and what not in model.ended]
        assert state.buffer.limit == min(open_at, default=None)
        hidden = [o for o, what in enumerate(model.log) if what == "marker" or model.ended.get(what) is False]  # type: ignore[arg-type]
        assert state.buffer.hidden_in(0, len(model.log)) == hidden
        held = {txn.least: found.whole for p in state.pending.values() for txn, found in p.held.items()}
        assert held == model.reserved
        assert {txn.least: found.whole for (_, txn), found in state.owed.items()} == model.owed
        assert {t.least for t in state.open_ones()} == {model.log[o] for o in open_at} | model.reserved.keys()


Machine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestTopicState = Machine.TestCase


def test_a_subscription_that_is_gone_holds_nothing() -> None:
    state = TopicState()
    ops = [
        ["p", "s", 0, 1, TransactionAcks({3}).encode()],
        ["p", "r", 0, 1, TransactionAcks({3}).encode()],
        ["e", 0, 1, 1, None],
        ["p", "s", 0, 2, TransactionAcks({4}).encode()],
        ["x", "s"],
    ]
    replay(state, [json.dumps(ops).encode()])
    assert not state.pending
    assert list(state.owed) == [("r", TxnId(0, 1))]


def test_what_is_trimmed_takes_no_room() -> None:
    state = TopicState()
    for at in range(1, 100_000, 7):
        state.apply(["e", 0, at, 1, at])
    full = len(state.buffer.hidden.dump())
    state.apply(["t", 99_000])
    assert len(state.buffer.hidden.dump()) < full / 10
    again = TopicState()
    again.decode(state.encode())
    again.buffer.check()
    for buffer in (state.buffer, again.buffer):
        assert buffer.hidden_in(99_000, 200_000) == [at for at in range(1, 100_000, 7) if at >= 99_000]


@pytest.mark.parametrize("commit", [False, True])
@pytest.mark.parametrize("marker", [None, NO_MARKER, 2])
@pytest.mark.parametrize("entries", [False, True])
def test_a_transaction_counts_where_it_sent_and_not_where_it_only_acknowledged(
    entries: bool, marker: int | None, commit: bool
) -> None:
    """What administrators see of a topic (rule 9.18); whatever the end says, entries never stay open behind it."""
    state = TopicState()
    txn = TxnId(0, 1)
    state.apply(["p", "s", 0, 1, TransactionAcks({3}).encode()])
    if entries:
        state.apply(["w", 0, 1, 0, 2])
    assert state.open_ones() == {txn}
    state.apply(["e", 0, 1, int(commit), marker])
    counted = entries or marker is not None
    assert (state.buffer.committed, state.buffer.aborted) == (counted and commit, counted and not commit)
    assert (state.buffer.limit, state.open_ones(), state.pending) == (None, set(), {})
    wanted = ([0, 1] if entries and not commit else []) + ([2] if marker == 2 else [])
    assert state.buffer.hidden_in(0, 3) == wanted
    assert list(state.owed) == ([("s", txn)] if commit else [])


def test_a_million_hidden_in_a_row_are_one_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer about an aborted transaction took six seconds of the loop with one look for each entry."""
    buffer, entries = TransactionBuffer(), 1_000_000
    buffer.wrote(TxnId(0, 1), 10, 10 + entries)
    buffer.ended(TxnId(0, 1), commit=False, marker=10 + entries)
    looks: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(AckedSet, name)

        def look(*what: Any) -> Any:
            looks.append(name)
            return real(*what)

        return look

    for name in ("next_present", "next_missing", "last_clear"):
        monkeypatch.setattr(AckedSet, name, counted(name))
    assert len(buffer.hidden_in(0, 20 + entries)) == entries + 1
    assert last_visible([ReadCommittedRule(buffer)], 0, 11 + entries) == 9
    assert len(looks) < 10


@given(
    hidden=st.sets(st.integers(0, 9_000), max_size=40), stretch=st.integers(0, 9_000), trimmed=st.integers(0, 9_000),
    start=st.integers(0, 9_000), length=st.integers(0, 9_000),
)  # fmt: skip
def test_the_last_that_is_shown(hidden: set[int], stretch: int, trimmed: int, start: int, length: int) -> None:
    buffer = TransactionBuffer()
    for ordinal in hidden:
        buffer.hidden.add_range(ordinal, ordinal + 1 + stretch % 5_000 * (ordinal % 3 == 0))
    if trimmed % 2:
        buffer.trimmed(trimmed)
    stop = start + length
    gone = set(buffer.hidden_in(start, stop))
    assert gone == {ordinal for ordinal in range(max(start, buffer.first), stop) if ordinal in buffer.hidden}
    shown = [ordinal for ordinal in range(start, stop) if ordinal not in gone]
    assert buffer.last_shown(start, stop) == (shown[-1] if shown else start - 1)
