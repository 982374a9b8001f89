"""The coordinator's decisions against a dictionary (rules 9.3 to 9.8)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from magnetar.model.errors import InvalidTxnStatusError, TooManyTransactionsError, TransactionNotFoundError
from magnetar.protocol.commands.ids import TxnId
from magnetar.transactions.coordinator import OPEN_MAX, Coordinator, OpenTransactions
from magnetar.transactions.operations import Op

LEASTS = st.integers(0, 12)


class Machine(RuleBasedStateMachine):
    """``disk`` is what the operations that became durable make; a crash loses the others."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000
        self.disk = OpenTransactions(0)
        self.waiting: list[Op] = []
        self.model: dict[int, tuple[str, int, set[str]]] = {}
        self.given = 0
        self.boot()

    def boot(self) -> None:
        living = OpenTransactions(0)
        living.decode(self.disk.encode())
        self.real = Coordinator(living, active_max=6)

    def note(self, op: Op | None) -> None:
        if op is not None:
            self.waiting.append(op)

    @rule(ttl=st.integers(0, 50))
    def begin(self, ttl: int) -> None:
        begun = self.real.begin(self.now, ttl)
        if len(self.model) == 6:
            assert begun is None
            return
        assert begun is not None
        txn, op = begun
        assert txn == TxnId(0, self.given)
        self.note(op)
        self.model[txn.least] = ("OPEN", self.now + ttl, set())
        self.given += 1

    @rule(least=LEASTS, topics=st.sets(st.sampled_from("abc")))
    def add(self, least: int, topics: set[str]) -> None:
        state = self.model.get(least)
        if state is None:
            with pytest.raises(TransactionNotFoundError, match=rf"`\(0,{least}\)`not found "):
                self.real.add_partitions(TxnId(0, least), sorted(topics))
        elif state[0] != "OPEN":
            with pytest.raises(InvalidTxnStatusError):
                self.real.add_partitions(TxnId(0, least), sorted(topics))
        else:
            op = self.real.add_partitions(TxnId(0, least), sorted(topics))
            assert (op is None) == (topics <= state[2])
            self.note(op)
            state[2].update(topics)

    @rule(least=LEASTS, commit=st.booleans())
    def end(self, least: int, commit: bool) -> None:
        state, wanted = self.model.get(least), "COMMITTING" if commit else "ABORTING"
        if state is None:
            with pytest.raises(TransactionNotFoundError):
                self.real.end(TxnId(0, least), commit=commit)
        elif state[0] == "OPEN":
            self.note(self.real.end(TxnId(0, least), commit=commit))
            self.model[least] = (wanted, state[1], state[2])
        elif state[0] == wanted:
            assert self.real.end(TxnId(0, least), commit=commit) is None
        else:
            with pytest.raises(InvalidTxnStatusError, match=f"but it is in `{state[0]}` status"):
                self.real.end(TxnId(0, least), commit=commit)

    @rule()
    def durable(self) -> None:
        for op in self.waiting:
            self.disk.apply(op)
            if op[0] == "e":
                self.real.ended(op[1])
                del self.model[op[1]]
        self.waiting.clear()

    @rule()
    def crash(self) -> None:
        self.waiting.clear()
        self.boot()
        # ids that no client received may be given again, what was durable may not
        self.given = self.disk.next
        self.model = {t.id.least: ("OPEN", t.deadline_ms, set(t.partitions)) for t in self.disk.all.values()}

    @rule(passed=st.integers(1, 30))
    def time(self, passed: int) -> None:
        self.now += passed
        expected = sorted(least for least, state in self.model.items() if state[0] == "OPEN" and state[1] <= self.now)
        due = self.real.due(self.now)
        assert sorted(txn.least for txn in due) == expected
        for txn in due:
            self.end(txn.least, commit=False)

    @invariant()
    def agrees(self) -> None:
        living = self.real.living.all
        assert {t.least: t_.status.value for t, t_ in living.items()} == {k: v[0] for k, v in self.model.items()}
        assert {t.least: set(t_.partitions) for t, t_ in living.items()} == {k: v[2] for k, v in self.model.items()}
        deadlines = [state[1] for state in self.model.values() if state[0] == "OPEN"]
        assert self.real.next_deadline() == min(deadlines, default=None)
        assert self.real.low_water_mark() == min(self.model, default=1) - 1


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestCoordinator = Machine.TestCase


def test_only_its_owner_may_use_it() -> None:
    """A transaction does not exist for any other principal (rule 9.7)."""
    real = Coordinator(OpenTransactions(0))
    begun = real.begin(0, 1000, "ann")
    assert begun is not None
    with pytest.raises(TransactionNotFoundError):
        real.add_partitions(begun[0], ["t"], "bob")
    with pytest.raises(TransactionNotFoundError):
        real.add_subscriptions(begun[0], [("t", "s")], "bob")
    with pytest.raises(TransactionNotFoundError):
        real.end(begun[0], commit=True, owner="bob")
    assert real.add_subscriptions(begun[0], [("t", "s")], "ann") is not None
    assert real.end(begun[0], commit=True, owner=None) is not None


def begun_until_refused(real: Coordinator, owner: str) -> int:
    """How many more transactions ``owner`` may begin."""
    count = 0
    while True:
        try:
            real.begin(0, 1 << 62, owner)
        except TooManyTransactionsError as error:
            assert f"`{owner}`" in str(error)
            return count
        count += 1


def test_one_owner_leaves_as_many_as_it_has() -> None:
    """Without a limit of the operator's each role that comes finds half of what is left."""
    living = OpenTransactions(0)
    real = Coordinator(living)
    assert begun_until_refused(real, "ann") == OPEN_MAX // 2
    assert begun_until_refused(real, "bob") == OPEN_MAX // 4
    assert begun_until_refused(real, "ann") == 0
    for txn in list(living.all)[: OPEN_MAX // 2]:
        real.end(txn, commit=False)
        real.ended(txn.least)
        real.ended(txn.least)  # what is written twice counts once
    again = OpenTransactions(0)
    again.decode(living.encode())
    assert begun_until_refused(Coordinator(again), "bob") == begun_until_refused(real, "bob") == OPEN_MAX // 4
    assert begun_until_refused(real, "ann") == OPEN_MAX // 4


def test_a_limit_of_the_operator_is_no_share() -> None:
    real = Coordinator(OpenTransactions(0), active_max=4)
    assert all(real.begin(0, 1000, "ann") for _ in range(4))
    assert real.begin(0, 1000, "bob") is None


def test_deadlines_of_what_has_ended_do_not_gather_behind_one_that_is_open() -> None:
    real = Coordinator(OpenTransactions(0))
    first = real.begin(0, 10_000, "ann")
    assert first is not None
    for number in range(5_000):
        begun = real.begin(0, 20_000 + number, "ann")
        assert begun is not None
        real.end(begun[0], commit=True)
        real.ended(begun[0].least)
    assert len(real._deadlines) < 2_000
    assert real.next_deadline() == 10_000
    assert real.due(10_000) == [first[0]]


@pytest.mark.parametrize("many", [0, 3_000])
def test_deadlines_are_up_to_a_thousand_more_than_twice_those_that_are_open(many: int) -> None:
    real = Coordinator(OpenTransactions(0))
    for _ in range(many):
        real.begin(0, 1 << 40, "ann")
    counts = []
    for number in range(5_000):
        begun = real.begin(0, 20_000 + number, "ann")
        assert begun is not None
        counts.append(len(real._deadlines))
        real.end(begun[0], commit=True)
        real.ended(begun[0].least)
    assert max(counts) == 2 * (many + 1) + 1_000


@pytest.mark.parametrize("commit", [True, False])
def test_what_is_ending_takes_nothing_more(commit: bool) -> None:
    """From the decision on, although the end is not durable yet (rule 9.6)."""
    real = Coordinator(OpenTransactions(0))
    begun = real.begin(0, 1000, "ann")
    assert begun is not None
    txn = begun[0]
    assert real.require_open(txn, "ann").id == txn
    real.end(txn, commit=commit)
    with pytest.raises(InvalidTxnStatusError):
        real.require_open(txn, "ann")
    for add in (real.add_partitions, lambda txn, topics: real.add_subscriptions(txn, [(topics[0], "s")])):
        with pytest.raises(InvalidTxnStatusError):
            add(txn, ["t"])
    real.ended(txn.least)
    with pytest.raises(TransactionNotFoundError):
        real.require_open(txn, "ann")
