"""Shared and Key_Shared against the naive model: what Hypothesis finds, and long random churn.

Hypothesis finds short counterexamples; the churn is for the states that only many consumers, unacknowledged entries
and changes of members bring about together.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.sharing_bench import SLOTS, KeySharedBench, SharedBench, SharingBench

ENTRIES = st.lists(st.tuples(st.integers(1, 6), st.sampled_from(SLOTS)), min_size=1, max_size=12)


class SharingMachine(RuleBasedStateMachine):
    """Rules for a bench; the bench judges."""

    bench: SharingBench

    def some(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.bench.states)))

    def any_ordinals(self, data: st.DataObject) -> list[int]:
        """Out here, out there, waiting, not read, acknowledged before."""
        return data.draw(st.lists(st.integers(0, len(self.bench.model.messages) - 1), min_size=1, max_size=8))

    @rule(entries=ENTRIES)
    def append(self, entries: list[tuple[int, int]]) -> None:
        self.bench.append(entries)

    @precondition(lambda self: len(self.bench.states) < 5)
    @rule(priority=st.integers(-1, 1), twin=st.booleans(), permits=st.integers(0, 40))
    def join(self, priority: int, twin: bool, permits: int) -> None:
        key = self.bench.join(priority, twin)
        if permits:
            self.bench.flow(key, permits)

    @precondition(lambda self: self.bench.states)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.bench.leave(self.some(data))

    @precondition(lambda self: self.bench.states)
    @rule(data=st.data(), permits=st.integers(1, 25))
    def flow(self, data: st.DataObject, permits: int) -> None:
        self.bench.flow(self.some(data), permits)

    @precondition(lambda self: self.bench.states)
    @rule(data=st.data())
    def toggle_socket(self, data: st.DataObject) -> None:
        self.bench.toggle_socket(self.some(data))

    @precondition(lambda self: self.bench.states and self.bench.model.messages)
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        """Any consumer may acknowledge any entry; the owner is credited (rule 5.7.4)."""
        self.bench.acknowledge(self.some(data), self.any_ordinals(data))

    @precondition(lambda self: self.bench.holders())
    @rule(data=st.data())
    def acknowledge_own(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.bench.holders()))
        out = sorted(self.bench.model.consumers[key].out)
        self.bench.acknowledge(key, data.draw(st.lists(st.sampled_from(out), min_size=1, unique=True)))

    @precondition(lambda self: self.bench.holders())
    @rule(data=st.data())
    def acknowledge_part(self, data: st.DataObject) -> None:
        model = self.bench.model
        ordinal = data.draw(
            st.sampled_from(sorted(model.consumers[data.draw(st.sampled_from(self.bench.holders()))].out))
        )
        self.bench.acknowledge_part(self.some(data), ordinal, data.draw(st.integers(1, model.messages[ordinal])))

    @precondition(lambda self: self.bench.states and self.bench.model.messages)
    @rule(data=st.data(), everything=st.booleans())
    def redeliver(self, data: st.DataObject, everything: bool) -> None:
        self.bench.redeliver(self.some(data), None if everything else self.any_ordinals(data))

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "bench"):
            self.bench.agrees()


class SharedMachine(SharingMachine):
    @initialize()
    def begin(self) -> None:
        self.bench = SharedBench()


class KeySharedMachine(SharingMachine):
    @initialize(ring=st.booleans())
    def begin(self, ring: bool) -> None:
        self.bench = KeySharedBench(ring)


def configured(machine: Any) -> Any:
    machine.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
    return machine.TestCase


TestShared = configured(SharedMachine)
TestKeyShared = configured(KeySharedMachine)


def step(bench: SharingBench, rng: random.Random) -> None:
    """One event; weights keep a few consumers busy most of the time."""
    action = rng.random()
    if not bench.states or (action < 0.04 and len(bench.states) < 6):
        bench.flow(bench.join(rng.randint(-1, 1), rng.random() < 0.3), rng.randint(1, 40))
        return
    key = rng.choice(sorted(bench.states))
    holders = bench.holders()
    if action < 0.07:
        bench.leave(key)
    elif action < 0.30:
        bench.append([(rng.randint(1, 4), rng.choice(SLOTS)) for _ in range(rng.randint(1, 6))])
    elif action < 0.55:
        bench.flow(key, rng.randint(1, 15))
    elif action < 0.57:
        bench.toggle_socket(key)
    elif action < 0.60 and bench.model.messages:
        bench.acknowledge(key, [rng.randrange(len(bench.model.messages))])  # waiting, unread or another consumer's
    elif holders:
        key = rng.choice(holders)
        out = sorted(bench.model.consumers[key].out)
        some = rng.sample(out, rng.randint(1, len(out)))
        if action < 0.66:
            bench.redeliver(key, some)
        elif action < 0.70:
            bench.acknowledge_part(key, some[0], rng.randint(1, bench.model.messages[some[0]]))
        else:
            bench.acknowledge(key, some)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["shared", "ranges", "ring"])
def test_churn(kind: str, seed: int) -> None:
    """Consumers come and go while entries are out; at the end everything gets through (rules 5.6.15, 5.6.9 to
    5.6.11)."""
    bench: SharingBench = SharedBench() if kind == "shared" else KeySharedBench(kind == "ring")
    rng = random.Random(seed)
    for _ in range(400):
        step(bench, rng)
        bench.agrees()
    assert bench.deliveries > 100
    for key in list(bench.states):
        bench.leave(key)
    last = bench.join(0, False)
    for _ in range(len(bench.model.messages)):
        bench.flow(last, 100)
        bench.acknowledge(last, sorted(bench.model.consumers[last].out) or [0])
    assert bench.model.acked == set(range(len(bench.model.messages)))
    bench.agrees()
