"""Shared and Key_Shared against the naive model, driven by Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from typing_extensions import override

from magnetar.broker.delivery.consumers import ConsumerState
from magnetar.broker.delivery.hash_ranges import HashRanges
from magnetar.broker.delivery.hash_ring import HashRing
from magnetar.broker.delivery.instructions import Do, Slice
from magnetar.broker.delivery.key_shared import KeyShared
from magnetar.broker.delivery.selector import Selector
from magnetar.broker.delivery.shared import Shared
from magnetar.broker.delivery.sharing import Limits, Sharing
from tests.unit.delivery.gate import FakeGate
from tests.unit.delivery.sharing_model import Model, ModelConsumer

LIMITS = Limits(
    read_entries_max=7,
    round_robin_messages=4,
    unacked_per_consumer=12,
    unacked_per_subscription=30,
    look_ahead_entries_per_consumer=6,
    look_ahead_entries_max=15,
)
SLOTS = [1, 9_000, 20_000, 33_000, 47_000, 65_535]


class SharingMachine(RuleBasedStateMachine):
    """Rules change both; ``pump`` dispatches until nothing moves and lets the model judge every entry."""

    dispatcher: Sharing
    joined: int

    def start(self, dispatcher: Sharing) -> None:
        self.dispatcher = dispatcher
        self.model = Model(LIMITS.unacked_per_consumer, LIMITS.unacked_per_subscription)
        self.states: dict[str, ConsumerState] = {}
        self.joined = 0

    def some(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.states)))

    # -- events ------------------------------------------------------------------------------------------------

    @rule(entries=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(SLOTS)), min_size=1, max_size=12))
    def append(self, entries: list[tuple[int, int]]) -> None:
        for messages, slot in entries:
            self.model.messages.append(messages)
            self.model.slots.append(slot)
        self.pump()

    @precondition(lambda self: len(self.states) < 5)
    @rule(priority=st.integers(-1, 1), twin=st.booleans())
    def join(self, priority: int, twin: bool) -> None:
        self.joined += 1
        key = f"{self.joined:03}"
        state = ConsumerState("twin" if twin else key, FakeGate(), priority)
        instructions = self.dispatcher.add(state)
        assert instructions == ([Do.REWIND] if not self.states else [])
        if instructions:
            self.model.rewind()
        self.states[key] = state
        self.model.consumers[key] = ModelConsumer()
        self.pump()

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        key = self.some(data)
        assert self.dispatcher.remove(self.states.pop(key)) == []
        self.model.leave(key)
        self.pump()

    @precondition(lambda self: self.states)
    @rule(data=st.data(), permits=st.integers(1, 25))
    def flow(self, data: st.DataObject, permits: int) -> None:
        key = self.some(data)
        self.dispatcher.flow(self.states[key], permits)
        self.model.flow(key, permits)
        self.pump()

    @precondition(lambda self: self.states)
    @rule(data=st.data())
    def toggle_socket(self, data: st.DataObject) -> None:
        key = self.some(data)
        gate = self.states[key].gate
        assert isinstance(gate, FakeGate)
        gate.writable = self.model.consumers[key].writable = not gate.writable
        self.pump()

    @precondition(lambda self: self.states and self.model.messages)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        """Any entry by any consumer: out here, out there, waiting, not read, acknowledged before (5.7.4)."""
        key = self.some(data)
        ordinals = data.draw(st.lists(st.integers(0, len(self.model.messages) - 1), min_size=1, max_size=8))
        self.dispatcher.acknowledged(self.states[key], ordinals)
        for ordinal in ordinals:
            self.model.acknowledge(ordinal)
        self.pump()

    @precondition(lambda self: any(c.out for c in self.model.consumers.values()))
    @rule(data=st.data())
    def acknowledge_own(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(k for k, c in self.model.consumers.items() if c.out)))
        out = sorted(self.model.consumers[key].out)
        ordinals = data.draw(st.lists(st.sampled_from(out), min_size=1, max_size=len(out), unique=True))
        self.dispatcher.acknowledged(self.states[key], ordinals)
        for ordinal in ordinals:
            self.model.acknowledge(ordinal)
        self.pump()

    @precondition(lambda self: any(c.out for c in self.model.consumers.values()))
    @rule(data=st.data())
    def acknowledge_part(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(k for k, c in self.model.consumers.items() if c.out)))
        ordinal = data.draw(st.sampled_from(sorted(self.model.consumers[key].out)))
        live = data.draw(st.integers(1, self.model.messages[ordinal]))
        self.dispatcher.partly_acknowledged(self.states[self.some(data)], ordinal, live)
        self.model.partly(ordinal, live)
        self.pump()

    @precondition(lambda self: self.states and self.model.messages)
    @rule(data=st.data(), everything=st.booleans())
    def redeliver(self, data: st.DataObject, everything: bool) -> None:
        key = self.some(data)
        ordinals = None if everything else data.draw(st.lists(st.integers(0, len(self.model.messages) - 1), max_size=8))
        assert self.dispatcher.redeliver(self.states[key], ordinals) == []
        self.model.redeliver(key, ordinals)
        self.pump()

    # -- the subscription's part ---------------------------------------------------------------------------------

    def pump(self) -> None:
        for _ in range(10_000):
            if not self.round():
                break
        else:
            raise AssertionError("the dispatcher keeps asking for reads that lead nowhere")
        self.nothing_is_stuck()

    def round(self) -> bool:
        model = self.model
        plan = self.dispatcher.plan_replay()
        if plan:
            assert plan == sorted(set(plan))
            assert set(plan) <= model.waiting
            stop = plan[-1] + 1
            slices = self.dispatcher.replay(plan[0], stop, model.messages[plan[0] : stop])
            assert slices, "planned for nothing"
            self.judge(slices, model.waiting.copy())
            return True
        wanted = self.dispatcher.wanted()
        model._skip()
        start = model.read_at
        if not wanted or start >= len(model.messages):
            return False
        stop = start
        while stop < min(start + wanted, len(model.messages)) and stop not in model.acked:
            stop += 1
        slices, reached = self.dispatcher.assign(start, stop, model.messages[start:stop], model.slots[start:stop])
        assert start <= reached <= stop
        self.judge(slices, set(range(start, reached)))
        out = {o for c in model.consumers.values() for o in c.out}
        model.waiting |= set(range(start, reached)) - out
        model.read_at = reached
        return reached > start

    def judge(self, slices: list[Slice], allowed: set[int]) -> None:
        keys = {state: key for key, state in self.states.items()}
        for state, start, stop in slices:
            for ordinal in range(start, stop):
                assert ordinal in allowed
                self.before_delivery(keys[state], ordinal)
                self.model.deliver(keys[state], ordinal)

    def before_delivery(self, key: str, ordinal: int) -> None:
        return

    def nothing_is_stuck(self) -> None:
        """Shared: while somebody is available, nothing waits and nothing is unread."""
        if not self.model.blocked and any(c.available for c in self.model.consumers.values()):
            assert not self.model.waiting
            self.model._skip()
            assert self.model.read_at >= len(self.model.messages)

    # -- after every step ----------------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "model"):
            return
        self.dispatcher.check()
        assert self.dispatcher.unacked == self.model.unacked
        assert self.dispatcher.blocked == self.model.blocked
        assert self.dispatcher.redelivery_counts() == self.model.redelivered
        for key, state in self.states.items():
            expected = self.model.consumers[key]
            assert (state.permits, state.parked, state.blocked) == (
                expected.permits, expected.parked, expected.blocked,
            )  # fmt: skip
            assert state.pending == expected.out


class SharedMachine(SharingMachine):
    @initialize()
    def begin(self) -> None:
        self.start(Shared(LIMITS))

    @override
    def round(self) -> bool:
        if self.model.waiting and not self.dispatcher.plan_replay():
            assert not self.dispatcher.wanted(), "new entries before replay (5.5.5)"
        return super().round()


class KeySharedMachine(SharingMachine):
    selector: Selector

    @initialize(ring=st.booleans())
    def begin(self, ring: bool) -> None:
        self.selector = HashRing() if ring else HashRanges()
        self.start(KeyShared(self.selector, LIMITS))

    def owner(self, slot: int) -> str | None:
        state = self.selector.select(slot)
        return next((key for key, other in self.states.items() if other is state), None)

    @override
    def before_delivery(self, key: str, ordinal: int) -> None:
        """One consumer per key at a time, the owner; first deliveries of a key in order (5.6.9, 5.6.10, 5.6.15)."""
        model = self.model
        slot = model.slots[ordinal]
        assert self.owner(slot) == key
        assert model.holder(slot) in (None, key), "the slot is draining"
        if ordinal in model.first_sent:
            return
        older = [o for o in range(ordinal) if model.slots[o] == slot and o not in model.acked]
        assert all(o in model.first_sent for o in older), "overtaken on first delivery"

    @override
    def nothing_is_stuck(self) -> None:
        """Every waiting entry that is the oldest of its slot waits for a reason; reading stops only for one."""
        model = self.model
        if model.blocked:
            return
        heads: dict[int, int] = {}
        for ordinal in sorted(model.waiting):
            heads.setdefault(model.slots[ordinal], ordinal)
        for slot in heads:
            owner = self.owner(slot)
            draining = model.holder(slot) not in (None, owner)
            assert owner is None or draining or not model.consumers[owner].available, f"slot {slot} is stuck"
        model._skip()
        if model.read_at < len(model.messages):
            look_ahead = min(6 * len(self.states), 15)
            assert len(model.waiting) >= look_ahead or not any(c.available for c in model.consumers.values())

    @invariant()
    def one_holder_per_slot(self) -> None:
        if hasattr(self, "model"):
            for slot in SLOTS:
                self.model.holder(slot)


def configured(machine: Any) -> Any:
    machine.TestCase.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)
    return machine.TestCase


TestShared = configured(SharedMachine)
TestKeyShared = configured(KeySharedMachine)
