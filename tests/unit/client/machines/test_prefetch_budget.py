"""The budget of permits: what goes out when, and that it never gives more than asked for; on its own, with a model."""

from __future__ import annotations

import random

from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.prefetch.prefetch_budget import NEVER, PATIENCE, PrefetchBudget
from magnetar.client.machines.prefetch.resent_entries import ResentEntries


def budget(size: int, topics: str) -> PrefetchBudget[str]:
    found: PrefetchBudget[str] = PrefetchBudget(size)
    for one in topics:
        found.note(one, holds=False, permitted=False)
    return found


def came(one: PrefetchBudget[str], topic: str) -> bool:
    """An entry of a topic has come; returns whether it is to go back."""
    one.note(topic, holds=True, permitted=False)
    return one.excess


def test_topics_with_messages_take_turns_with_one_permit() -> None:
    one = budget(1, "abc")
    for round_of in ("a", "b", "c", "a", "b"):
        assert one.grant(0.0) == [round_of]
        assert one.grant(0.0) == []
        assert not came(one, round_of)
        assert one.grant(9.0) == [], "one is held"
        one.note(round_of, holds=False, permitted=False)


def test_where_nothing_comes_the_others_are_asked_too() -> None:
    one = budget(1, "abcdefgh")
    assert one.grant(0.0) == ["a"] and one.due == PATIENCE
    assert one.grant(PATIENCE / 2) == []
    assert one.grant(PATIENCE) == ["b", "c"]
    assert one.grant(2 * PATIENCE) == ["d", "e", "f", "g"]
    assert one.grant(3 * PATIENCE) == ["h"] and one.due == NEVER
    assert not came(one, "h")
    assert came(one, "b"), "no room for two"
    one.note("b", holds=False, permitted=False)
    one.note("h", holds=False, permitted=False)
    assert one.grant(3 * PATIENCE) == ["h"], "the others listen already"


def test_without_a_prefetch_only_receives_make_room() -> None:
    one = budget(0, "ab")
    assert one.grant(0.0) == [] and one.due == NEVER
    one.receiving = 1
    assert one.grant(0.0) == ["a"]
    one.receiving = 0
    assert came(one, "a"), "nobody waits any more"


def test_a_message_in_chunks_is_asked_for_to_its_end() -> None:
    one = budget(1, "ab")
    assert one.grant(0.0) == ["a"]
    one.note("a", holds=False, permitted=False, unfinished=True)
    assert one.grant(0.0) == ["a"]
    assert not came(one, "b")
    one.note("a", holds=False, permitted=False, unfinished=True)
    assert one.grant(0.0) == ["a"], "whatever else is held"


def test_a_model_of_many_topics() -> None:
    """Whatever comes in whatever order: no more than the size is held, and a topic is never asked twice."""
    for seed in range(200):
        rng = random.Random(seed)
        size, topics = rng.randint(0, 3), "abcdefghij"[: rng.randint(1, 10)]
        one, permitted, held, now = budget(size, topics), set[str](), set[str](), 0.0
        for _ in range(300):
            now += rng.choice((0.0, 0.01, PATIENCE))
            one.receiving = rng.randint(0, 2) if not size and not held else one.receiving
            for each in one.grant(now):
                assert each not in permitted
                permitted.add(each)
            one.check()
            kind = rng.random()
            if kind < 0.5 and permitted:
                topic = rng.choice(sorted(permitted))
                permitted.discard(topic)
                if came(one, topic):
                    one.note(topic, holds=topic in held, permitted=False)
                else:
                    held.add(topic)
            elif kind < 0.8 and held:
                topic = rng.choice(sorted(held))
                held.discard(topic)
                one.note(topic, holds=False, permitted=topic in permitted)
            elif kind < 0.85:
                topic = rng.choice(topics)
                permitted.discard(topic)
                held.discard(topic)
                one.left(topic)
                one.note(topic, holds=False, permitted=False)
            assert len(held) <= (size or one.receiving) and not one.excess


def test_what_comes_again_is_left_out_up_to_what_was_taken() -> None:
    one = ResentEntries()
    assert not one.leaves_out((1, 1))
    one.expect(MessageId(-1, 1, 5), whole=False)
    assert one.leaves_out((1, 2)) and one.leaves_out((1, 5)) and not one.leaves_out((1, 6))
    assert not one.leaves_out((1, 2)), "something new has come: the rest was refused by the application"
    one.expect(MessageId(-1, 1, 5, 2), whole=False)
    assert one.leaves_out((1, 4)) and not one.leaves_out((1, 5)) and one.part == MessageId(-1, 1, 5, 2)
    one.expect(MessageId(-1, 1, 5, 2), whole=True)
    assert one.leaves_out((1, 5)) and one.part is None
    one.forget()
    assert not one.leaves_out((1, 5))
