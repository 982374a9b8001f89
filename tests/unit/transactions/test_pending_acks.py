"""Reserved acknowledgements against a dictionary of single messages (rule 9.12)."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from magnetar.protocol.commands.ids import TxnId
from magnetar.transactions.pending_acks import PartialBatch, PendingAcks, TransactionAcks, partial_batch

SIZE = 70
"""Messages of every batch: more than one word of an ack set."""
TXNS = st.builds(TxnId, st.just(0), st.integers(0, 3))
ORDINALS = st.integers(0, 5)
INDEXES = st.sets(st.sampled_from((0, 1, 63, 64, 69)), min_size=1)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.real = PendingAcks()
        self.holder: dict[tuple[int, int], TxnId] = {}
        self.until: tuple[TxnId, int, float] | None = None

    def ask(self, txn: TxnId, whole: set[int], parts: dict[int, set[int]]) -> None:
        messages = {(o, i) for o in whole for i in range(SIZE)} | {(o, i) for o, ii in parts.items() for i in ii}
        asked = [PartialBatch(o, sum(1 << i for i in indexes), SIZE) for o, indexes in parts.items()]
        conflict = self.real.conflict(sorted(whole), asked)
        taken = {ordinal for ordinal, index in messages if (ordinal, index) in self.holder}
        if taken:
            assert conflict is not None
            assert conflict[0] in taken
            assert conflict[1] == (conflict[0] in parts)
        else:
            assert conflict is None
            self.real.reserve(txn, sorted(whole), asked)
            self.holder.update(dict.fromkeys(messages, txn))

    @rule(txn=TXNS, whole=st.sets(ORDINALS, max_size=3))
    def entries(self, txn: TxnId, whole: set[int]) -> None:
        self.ask(txn, whole, {})

    @rule(txn=TXNS, whole=st.sets(ORDINALS, max_size=1), ordinal=ORDINALS, indexes=INDEXES)
    def messages(self, txn: TxnId, whole: set[int], ordinal: int, indexes: set[int]) -> None:
        self.ask(txn, whole - {ordinal}, {ordinal: indexes})

    @rule(txn=TXNS, ordinal=ORDINALS, taken=st.integers(0, 8))
    def cumulative(self, txn: TxnId, ordinal: int, taken: int) -> None:
        asked = PartialBatch(ordinal, (1 << taken) - 1, 8) if taken else PartialBatch(ordinal, 0, 0)
        reach = float(taken or "inf")
        conflict = self.real.conflict_until(txn, asked)
        if self.until is not None and (txn != self.until[0] or (ordinal, reach) <= self.until[1:]):
            assert conflict is not None
            assert conflict.ordinal == self.until[1]
        else:
            assert conflict is None
            self.real.reserve_until(txn, asked)
            self.until = (txn, ordinal, reach)

    @rule(txn=TXNS)
    def end(self, txn: TxnId) -> None:
        held = self.real.take(txn)
        mine = {message for message, holder in self.holder.items() if holder == txn}
        if self.until is not None and self.until[0] == txn:
            assert held is not None
            assert held.until is not None
            assert held.until.ordinal == self.until[1]
            self.until = None
        else:
            assert held is None or held.until is None
        assert (held.entries() if held else []) == sorted({ordinal for ordinal, _ in mine})
        for message in mine:
            del self.holder[message]

    @precondition(lambda self: self.real)
    @rule()
    def written_and_read(self) -> None:
        again = PendingAcks()
        for txn, held in self.real.held.items():
            again.restore(txn, TransactionAcks.decode(held.encode()))
        assert again.held == self.real.held
        self.real = again

    @invariant()
    def agrees(self) -> None:
        self.real.check()
        for ordinal in range(6):
            held = {index for o, index in self.holder if o == ordinal}
            part = self.real.parts.get(ordinal)
            if ordinal in self.real.whole:
                assert len(held) == SIZE
            elif part is not None:
                left = partial_batch(ordinal, part.left_of(()), SIZE)
                assert held == {index for index in range(SIZE) if left.taken >> index & 1}
            else:
                assert not held


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPending = Machine.TestCase


def test_an_ack_set_says_what_stays() -> None:
    """The words of an ack_set say what stays; they are signed on the wire (rule 5.7.6)."""
    part = partial_batch(3, (-2,), 0)
    assert (part.taken, part.size) == (1, 64)
    assert part.left == ((1 << 64) - 2,)
    assert partial_batch(3, (0b110,), 3).left_of((0b101,)) == (0b100,)


def test_a_batch_has_no_more_messages_than_fit_into_an_entry() -> None:
    """Whatever a client says: what is reserved takes a bit each."""
    for said, size in ((5, 5), (1 << 20, 1 << 20), ((1 << 20) + 1, 1 << 20), (1 << 31, 1 << 20)):
        part = partial_batch(3, (), said)
        assert (part.size, part.taken.bit_count()) == (size, size)
