"""A dispatcher and the naive model side by side: every event goes to both, every delivery is judged."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatch_limits import DispatchLimits
from magnetar.broker.delivery.dispatchers.key_shared import KeyShared
from magnetar.broker.delivery.dispatchers.multiple_consumers import MultipleConsumers
from magnetar.broker.delivery.dispatchers.shared import Shared
from magnetar.broker.delivery.instructions import Do, Slice
from magnetar.broker.delivery.sticky_keys.hash_ranges import HashRanges
from magnetar.broker.delivery.sticky_keys.hash_ring import HashRing
from magnetar.broker.delivery.sticky_keys.selector import Selector
from tests.support.sharing_model import Model, ModelConsumer
from tests.support.writable import FakeWritable

LIMITS = DispatchLimits(
    read_entries_max=7,
    round_robin_messages=4,
    unacked_per_consumer=12,
    unacked_per_subscription=30,
    look_ahead_entries_per_consumer=6,
    look_ahead_entries_max=15,
)
SLOTS = [1, 9_000, 20_000, 33_000, 47_000, 65_535]


class SharingBench:
    """After each event, ``pump`` dispatches until nothing moves, as a subscription does."""

    def __init__(self, dispatcher: MultipleConsumers) -> None:
        self.dispatcher = dispatcher
        self.model = Model(LIMITS.unacked_per_consumer, LIMITS.unacked_per_subscription)
        self.states: dict[str, ConsumerState] = {}
        self.joined = 0
        self.deliveries = 0

    # -- events ------------------------------------------------------------------------------------------------

    def append(self, entries: Iterable[tuple[int, int]]) -> None:
        """Messages and slot of each."""
        for messages, slot in entries:
            self.model.messages.append(messages)
            self.model.slots.append(slot)
        self.pump()

    def join(self, priority: int, twin: bool) -> str:
        self.joined += 1
        key = f"{self.joined:03}"
        state = ConsumerState("twin" if twin else key, FakeWritable(), priority)
        instructions = self.dispatcher.add(state)
        assert instructions == ([Do.REWIND] if not self.states else [])
        if instructions:
            self.model.rewind()
        self.states[key] = state
        self.model.consumers[key] = ModelConsumer()
        self.pump()
        return key

    def leave(self, key: str) -> None:
        assert self.dispatcher.remove(self.states.pop(key)) == []
        self.model.leave(key)
        self.pump()

    def flow(self, key: str, permits: int) -> None:
        self.dispatcher.flow(self.states[key], permits)
        self.model.flow(key, permits)
        self.pump()

    def toggle_socket(self, key: str) -> None:
        connection = self.states[key].connection
        assert isinstance(connection, FakeWritable)
        connection.writable = self.model.consumers[key].writable = not connection.writable
        self.pump()

    def acknowledge(self, key: str, ordinals: list[int]) -> None:
        self.dispatcher.acknowledged(self.states[key], ordinals)
        for ordinal in ordinals:
            self.model.acknowledge(ordinal)
        self.pump()

    def acknowledge_part(self, key: str, ordinal: int, live: int) -> None:
        self.dispatcher.partly_acknowledged(self.states[key], ordinal, live)
        self.model.partly(ordinal, live)
        self.pump()

    def redeliver(self, key: str, ordinals: list[int] | None) -> None:
        assert self.dispatcher.redeliver(self.states[key], ordinals) == []
        self.model.redeliver(key, ordinals)
        self.pump()

    def holders(self) -> list[str]:
        """Who has entries out."""
        return sorted(key for key, consumer in self.model.consumers.items() if consumer.out)

    # -- the subscription's part ---------------------------------------------------------------------------------

    def pump(self) -> None:
        self.dispatcher.new_turn()
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
        sent = [(ordinal, keys[piece.consumer]) for piece in slices for ordinal in piece.ordinals]
        for key in self.states:
            mine = [ordinal for ordinal, to in sent if to == key]
            assert mine == sorted(mine)
        for ordinal, key in sorted(sent):  # slices are grouped by consumer; decisions were made in this order
            assert ordinal in allowed
            self.before_delivery(key, ordinal)
            self.model.deliver(key, ordinal)
            self.deliveries += 1

    def before_delivery(self, key: str, ordinal: int) -> None:
        return

    def nothing_is_stuck(self) -> None:
        """Shared: while a consumer is available, nothing waits and nothing is unread."""
        if not self.model.blocked and any(c.available for c in self.model.consumers.values()):
            assert not self.model.waiting
            self.model._skip()
            assert self.model.read_at >= len(self.model.messages)

    def agrees(self) -> None:
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


class SharedBench(SharingBench):
    def __init__(self) -> None:
        super().__init__(Shared(LIMITS))

    @override
    def round(self) -> bool:
        if self.model.waiting and not self.dispatcher.plan_replay():
            assert not self.dispatcher.wanted(), "new entries before replay (rule 5.5.5)"
        return super().round()


class KeySharedBench(SharingBench):
    def __init__(self, ring: bool) -> None:
        self.selector: Selector = HashRing() if ring else HashRanges()
        super().__init__(KeyShared(self.selector, LIMITS))

    def owner(self, slot: int) -> str | None:
        state = self.selector.select(slot)
        return next((key for key, other in self.states.items() if other is state), None)

    @override
    def before_delivery(self, key: str, ordinal: int) -> None:
        """One consumer per key at a time, the owner; first deliveries of a key in order (rules 5.6.9, 5.6.10,
        5.6.15)."""
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

    @override
    def agrees(self) -> None:
        super().agrees()
        for slot in SLOTS:
            self.model.holder(slot)
