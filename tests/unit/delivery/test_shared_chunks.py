"""All chunks of a message at one consumer, whatever happens (rules 3.6.6, 5.2.3).

The churn of whole subscriptions runs on a log in which every third message is chunked and chunks of several messages
interleave; a witness judges every delivery. Before it the single rules.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from typing_extensions import override

from magnetar.broker.delivery.dispatchers.shared import stretches
from magnetar.broker.delivery.dispatchers.shared_chunks import ChunkInfo, SharedChunks
from magnetar.broker.topic.dispatch.consumer import Consumer
from magnetar.model.subscription_types import SubType
from tests.support.subscription_churn import Churn, Witness, WitnessConnection
from tests.support.subscription_stand import Stand


def number_of(entry: bytes) -> int:
    return int(entry.removeprefix(b"entry-"))


class Layout:
    """Which ordinal is which chunk, made up as entries come."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.chunks: list[ChunkInfo | None] = []
        self.open: list[tuple[str, int]] = []
        self.messages = 0

    def of(self, entry: bytes) -> ChunkInfo | None:
        ordinal = number_of(entry)
        while len(self.chunks) <= ordinal:
            self.chunks.append(self._next())
        return self.chunks[ordinal]

    def _next(self) -> ChunkInfo | None:
        luck = self.rng.random()
        if luck < 0.3:
            return None
        if luck < 0.5 and len(self.open) < 4:
            self.messages += 1
            self.open.append((f"m{self.messages}", self.rng.randint(2, 6)))
        if not self.open:
            return None
        at = self.rng.randrange(len(self.open))
        uuid, left = self.open[at]
        if left == 1:
            del self.open[at]
        else:
            self.open[at] = (uuid, left - 1)
        return ChunkInfo(uuid, left == 1)


def chunked(*chunks: ChunkInfo | None) -> Stand:
    stand = Stand()
    stand.subscription.has_chunks(lambda entry: chunks[number_of(entry)] if number_of(entry) < len(chunks) else None)
    stand.log.append(*[1] * len(chunks))
    return stand


A, A_END, B, B_END = ChunkInfo("a", False), ChunkInfo("a", True), ChunkInfo("b", False), ChunkInfo("b", True)


def test_interleaved_messages_stay_together() -> None:
    stand = chunked(*[A, B, None, B, A] * 10, A_END, B_END)
    connections = [stand.join(name)[1] for name in "xyz"]
    for consumer in stand.subscription.consumers:
        stand.subscription.flow(consumer, 100)
    got = [set(connection.ordinals) for connection in connections]
    for wanted in (A, B):
        mine = {
            o for o, chunk in enumerate([*[A, B, None, B, A] * 10, A_END, B_END]) if chunk and chunk.uuid == wanted.uuid
        }
        assert sum(1 for ordinals in got if ordinals & mine) == 1
    assert sum(map(len, got)) == 52


def test_one_assignment_goes_on_behind_messages_without_chunks() -> None:
    stand = chunked(None, None, A, A_END, None, None)
    consumer, _ = stand.join("x")
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    dispatcher.flow(consumer.state, 100)
    dispatcher.note_chunks(0, [None, None, A, A_END, None, None])
    slices, reached = dispatcher.assign(0, 6, None, None)
    assert reached == 6
    assert [ordinal for piece in slices for ordinal in range(piece.start, piece.stop)] == list(range(6))


def test_a_slow_consumer_holds_up_only_its_own_message() -> None:
    stand = chunked(A, A, None, None, A, A_END, None)
    slow, slow_connection = stand.join("slow", permits=1)
    _, quick_connection = stand.join("quick", permits=100)
    assert slow_connection.ordinals == [0]
    assert quick_connection.ordinals == [2, 3, 6]
    assert stand.subscription.stats().in_replay == 3
    stand.subscription.flow(slow, 2)
    stand.subscription.flow(slow, 2)
    assert slow_connection.ordinals == [0, 1, 4, 5]


def test_a_chunk_never_overtakes_those_of_its_message_that_wait() -> None:
    """No chunk goes elsewhere in the moment in which its consumer may have more and what waits was not looked at
    yet."""
    stand = chunked(A, A, A, A_END, None)
    slow, slow_connection = stand.join("slow", permits=1)
    _, quick_connection = stand.join("quick", permits=100)
    stand.append_many(0)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    assert (slow_connection.ordinals, quick_connection.ordinals) == ([0], [4])
    stand.subscription.has_chunks(lambda entry: A)
    dispatcher._chunks[5] = A
    slow.state.permits = 10
    assert dispatcher.assign(5, 6, None, None) == ([], 6)
    assert dispatcher.in_replay == 4
    stand.log.append(1)
    stand.subscription.flow(slow, 1)
    assert slow_connection.ordinals[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize("until", range(-1, 6))
def test_what_is_acknowledged_as_a_whole_waits_and_is_remembered_no_more(until: int) -> None:
    """Chunks that are parked, chunks whose places are known, and messages that wait to be sent again."""
    stand = chunked(A, A, A, A_END, None, None)
    slow, _ = stand.join("slow", permits=1)
    quick, _ = stand.join("quick", permits=100)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    quick.state.permits = 0
    stand.subscription.redeliver(quick, None)
    assert (list(slow.state.pending), dispatcher.in_replay) == ([0], 5)
    dispatcher.acknowledged_until(until)
    assert [dispatcher.has(ordinal) for ordinal in range(1, 6)] == [ordinal > until for ordinal in range(1, 6)]
    assert dispatcher.in_replay == 5 - min(max(until, 0), 5)
    assert set(dispatcher._chunks) == set(range(max(until + 1, 0), 4))


@pytest.mark.parametrize("full", ["its connection", "what it has not acknowledged"])
def test_parked_chunks_are_not_read_again_for_a_consumer_that_takes_nothing_now(full: str) -> None:
    """Though it has permits."""
    stand = chunked(A, A, A, A_END)
    slow, connection = stand.join("slow", permits=1)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    stand.join("quick", permits=100)
    slow.state.permits = 10
    if full == "its connection":
        connection.writable = False
    else:
        slow.state.blocked = True
    assert (dispatcher.in_replay, dispatcher.plan_replay()) == (3, [])
    connection.writable, slow.state.blocked = True, False
    assert dispatcher.plan_replay() == [1, 2, 3]


def test_parked_chunks_stop_the_reading_when_they_are_many() -> None:
    chunks = [A, A, A, A, A, None, None]
    stand = Stand(key_shared_look_ahead_per_subscription=4, dispatcher_max_read_batch_size=1)
    stand.subscription.has_chunks(lambda entry: chunks[number_of(entry)])
    slow, _ = stand.join("slow", permits=1)
    _, quick_connection = stand.join("quick", permits=100)
    stand.append_many(7)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    assert (dispatcher.in_replay, quick_connection.ordinals) == (4, [])
    assert dispatcher.look_ahead_full
    assert dispatcher.wanted() == 0
    stand.subscription.flow(slow, 1)
    assert not dispatcher.look_ahead_full
    assert quick_connection.ordinals == [5, 6]


def test_no_more_than_one_read_may_have_is_planned_to_be_read_again() -> None:
    """dispatcherMaxReadBatchSize; of several consumers' chunks the first ones."""
    chunks = [A, B, A, B, A, B, A, B, None]
    stand = Stand(dispatcher_max_read_batch_size=3)
    stand.subscription.has_chunks(lambda entry: chunks[number_of(entry)])
    both = [stand.join(name, permits=1)[0] for name in "ab"]
    stand.join("quick", permits=100)
    stand.append_many(9)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    assert dispatcher.in_replay == 6
    for consumer in both:
        consumer.state.permits = 10
    assert dispatcher.plan_replay() == [2, 3, 4]


def test_a_parked_chunk_is_neither_out_nor_left_over() -> None:
    """It waits for the consumer of its message: whoever takes chunks back has nothing to send it for."""
    stand = chunked(A, A, A, A_END, None)
    slow, _ = stand.join("slow", permits=1)
    stand.join("quick", permits=100)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    assert (list(slow.state.pending), dispatcher.in_replay) == ([0], 3)
    assert [dispatcher.has(ordinal) for ordinal in range(6)] == [True, True, True, True, True, False]
    assert dispatcher.take_back([1, 3, 5]) == [5]
    assert dispatcher.withdraw([2]) and not dispatcher.withdraw([2])
    assert not dispatcher.has(2)
    assert dispatcher.in_replay == 2


def test_a_parked_chunk_waits_for_its_own_consumer_and_what_comes_again_for_any() -> None:
    stand = chunked(A, A, A, A_END)
    (x, _), (y, _) = stand.join("x"), stand.join("y")
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    assert not dispatcher.waits_for([x.state, y.state])
    stand.subscription.flow(x, 1)
    stand.subscription.flow(y, 1)
    owner, other = (x, y) if x.state.pending else (y, x)
    assert dispatcher.in_replay
    assert dispatcher.waits_for([owner.state])
    assert dispatcher.waits_for([other.state, owner.state])
    assert not dispatcher.waits_for([other.state])
    dispatcher.redeliver(owner.state, None)
    assert dispatcher.waits_for([other.state])


def test_parked_chunks_without_a_limit_stop_nothing() -> None:
    chunks = [A, A, A, None, None]
    stand = Stand(key_shared_look_ahead_per_subscription=0, dispatcher_max_read_batch_size=1)
    stand.subscription.has_chunks(lambda entry: chunks[number_of(entry)])
    stand.join("slow", permits=1)
    _, quick_connection = stand.join("quick", permits=100)
    stand.append_many(5)
    assert quick_connection.ordinals == [3, 4]


def test_what_was_acknowledged_is_not_remembered() -> None:
    stand = chunked(A, B, None, A_END, B_END)
    consumer, connection = stand.join("c", permits=100)
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    assert set(dispatcher._chunks) == {0, 1, 3, 4}
    stand.subscription.acks.take(consumer, [1, 2, 4])
    assert set(dispatcher._chunks) == {0, 3}
    stand.subscription.acks.take(consumer, [0, 3])
    assert not dispatcher._chunks
    assert not dispatcher._owner
    assert connection.ordinals == [0, 1, 2, 3, 4]


def test_of_unfinished_messages_twenty_thousand_are_remembered_and_the_oldest_choice_is_forgotten() -> None:
    """A producer that never ends its messages takes no more memory than that."""
    many = 20_001
    stand = chunked(A_END)
    stand.join("c")
    dispatcher = stand.subscription.dispatcher
    assert isinstance(dispatcher, SharedChunks)
    dispatcher.flow(stand.subscription.consumers[0].state, 2 * many)
    dispatcher.note_chunks(0, [ChunkInfo(f"m{number}", False) for number in range(many)])
    assert dispatcher.assign(0, many - 1, None, None)[1] == many - 1
    assert len(dispatcher._owner) == 20_000 and "m0" in dispatcher._owner
    assert dispatcher.assign(many - 1, many, None, None)[1] == many
    assert len(dispatcher._owner) == 20_000
    assert "m0" not in dispatcher._owner and {"m1", "m20000"} <= dispatcher._owner.keys()


def test_stretches_of_nothing_are_none() -> None:
    assert list(stretches([])) == []
    assert list(stretches([3])) == [(3, 4)]
    assert list(stretches([1, 2, 5, 6, 8])) == [(1, 3), (5, 7), (8, 9)]


def test_redelivered_and_left_behind_chunks_go_to_one_consumer() -> None:
    stand = chunked(A, A, A, A_END)
    first, first_connection = stand.join("first", permits=3)
    second, second_connection = stand.join("second", permits=100)
    assert first_connection.ordinals == [0, 1, 2]
    assert second_connection.ordinals == []
    stand.subscription.remove_consumer(first)
    assert second_connection.ordinals == [0, 1, 2, 3]
    stand.subscription.redeliver(second, None)
    assert second_connection.ordinals == [0, 1, 2, 3] * 2


def test_takes_over_what_shared_had() -> None:
    stand = Stand()
    stand.append_many(5)
    consumer, connection = stand.join(permits=3)
    stand.subscription.has_chunks(lambda entry: A)
    assert isinstance(stand.subscription.dispatcher, SharedChunks)
    stand.subscription.acks.take(consumer, [1])
    stand.subscription.flow(consumer, 10)
    assert connection.ordinals == [0, 1, 2, 3, 4]
    assert consumer.state.unacked == 4
    stand.subscription.dispatcher.check()


class ChunkWitness(Witness):
    layout: Layout

    @override
    def saw(self, connection: WitnessConnection, ordinal: int) -> None:
        super().saw(connection, ordinal)
        chunk = self.layout.of(b"entry-%d" % ordinal)
        if chunk is None:
            return
        for other, holder in self.out.items():
            sibling = self.layout.of(b"entry-%d" % other)
            if sibling is not None and sibling.uuid == chunk.uuid:
                assert holder is connection, f"{chunk.uuid} is out at two consumers"


class ChunkChurn(Churn):
    def __init__(self, seed: int) -> None:
        super().__init__(SubType.Shared, seed, ring=False)
        self.layout = Layout(seed)
        witness = ChunkWitness(self.cursor, SubType.Shared)
        witness.layout = self.layout
        self.witness = witness
        self.subscription.has_chunks(self.layout.of)

    @override
    def redeliver(self, consumer: Consumer) -> None:
        """Acknowledges all chunks of a message together, as clients do."""
        connection = self.members[consumer]
        mine = sorted(o for o, holder in self.witness.out.items() if holder is connection)
        if mine:
            some = set(self.rng.sample(mine, self.rng.randint(1, len(mine))))
            named = {chunk.uuid for o in some if (chunk := self.layout.of(b"entry-%d" % o)) is not None}
            for o in mine:
                chunk = self.layout.of(b"entry-%d" % o)
                if chunk is not None and chunk.uuid in named:
                    some.add(o)
            self.forget(sorted(some))
            self.subscription.redeliver(consumer, sorted(some))


@pytest.mark.parametrize("seed", range(20))
def test_churn(seed: int) -> None:
    async def main() -> None:
        churn = ChunkChurn(seed)
        for _ in range(500):
            churn.step()
            dispatcher = churn.subscription.dispatcher
            if dispatcher is not None:
                assert isinstance(dispatcher, SharedChunks)
                dispatcher.check()
        await churn.finish()
        assert churn.witness.deliveries > 50
        assert churn.layout.messages > 3

    asyncio.run(main())


def test_permits_never_leak() -> None:
    """Every chunk costs one permit, parked or not."""
    rng = random.Random(3)
    layout = Layout(3)
    stand = Stand()
    stand.subscription.has_chunks(layout.of)
    members = [stand.join(name) for name in "abc"]
    given = dict.fromkeys("abc", 0)
    for _ in range(300):
        consumer, connection = rng.choice(members)
        permits = rng.randint(1, 5)
        given[consumer.name] += permits
        stand.subscription.flow(consumer, permits)
        stand.append_many(rng.randint(0, 6))
        if connection.ordinals and rng.random() < 0.5:
            stand.subscription.acks.take(consumer, connection.ordinals)
        for each, its in members:
            assert each.state.permits == given[each.name] - len(its.got)
    assert isinstance(stand.subscription.dispatcher, SharedChunks)
