"""A correct history passes; each promise broken by one event is found, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from magnetar.testing.history import (
    AckConfirmed,
    Acked,
    ActiveChanged,
    ConsumerLeft,
    ConsumerOpened,
    Crashed,
    Delivered,
    Drained,
    Event,
    MessagePosition,
    Receipted,
    RedeliveryAsked,
    Sent,
    Sought,
    Subscribed,
)
from magnetar.testing.history_check import HistoryError, Order, Rules, check, verify

T, S = "persistent://public/default/t", "sub"


def published(*values: str, key: str | None = None, start: int = 0) -> list[Event]:
    events: list[Event] = []
    for entry, value in enumerate(values, start):
        events += [Sent(T, "p", value, key), Receipted(T, "p", value, MessagePosition(0, entry))]
    return events


def opened(*consumers: str) -> list[Event]:
    return [Subscribed(T, S), *(ConsumerOpened(T, S, consumer) for consumer in consumers)]


def got(entry: int, value: str, consumer: str = "c") -> Delivered:
    return Delivered(T, S, consumer, MessagePosition(0, entry), value)


def acked(entry: int, consumer: str = "c", *, cumulative: bool = False) -> list[Event]:
    place = MessagePosition(0, entry)
    return [Acked(T, S, consumer, place, cumulative), AckConfirmed(T, S, place, cumulative)]


def one_failure(events: Sequence[Event], rules: Rules, text: str) -> None:
    broken = check(events, rules)
    assert len(broken) == 1, broken
    assert text in broken[0]


ABC = [*published("a", "b", "c"), *opened("c")]
DONE = Drained(T, S)
SHARED = Rules(Order.NONE)


def test_a_correct_history_passes() -> None:
    verify([*ABC, got(0, "a"), *acked(0), got(1, "b"), got(2, "c"), *acked(2, cumulative=True), DONE], Rules())


def test_a_receipted_value_that_never_comes_is_missing() -> None:
    one_failure(
        [*ABC, got(0, "a"), got(1, "b"), DONE], Rules(), "'c' at MessagePosition(ledger=0, entry=2, batch_index=-1) was"
    )
    late = [*published("a"), Subscribed(T, S, MessagePosition(0, 0)), *published("b", start=1), got(1, "b"), DONE]
    assert check(late, Rules()) == []
    unreceipted = [Sent(T, "p", "lost"), *ABC, got(0, "a"), got(1, "b"), got(2, "c"), DONE]
    assert check(unreceipted, Rules()) == []


def test_values_and_places_belong_together() -> None:
    one_failure([*ABC, got(7, "never")], SHARED, "never sent")
    clash = check([*ABC, Sent(T, "q", "d"), Receipted(T, "q", "d", MessagePosition(0, 2))], SHARED)
    assert any("place holds 'c' already" in line for line in clash)
    one_failure([*ABC, got(5, "a")], SHARED, "value stands at 2 places")
    retried = [*ABC, Sent(T, "p", "c"), Receipted(T, "p", "c", MessagePosition(0, 3)), got(2, "c"), got(3, "c")]
    assert check(retried, Rules(retry_may_duplicate=True)) == []


def test_receipts_ascend_per_producer_and_after_what_was_known() -> None:
    sent: list[Event] = [Sent(T, "p", "a"), Sent(T, "p", "b")]
    one_failure(
        [*sent, Receipted(T, "p", "a", MessagePosition(0, 5)), Receipted(T, "p", "b", MessagePosition(0, 4))],
        Rules(),
        "got first",
    )
    later: list[Event] = [Sent(T, "q", "z"), Receipted(T, "q", "z", MessagePosition(0, 1))]
    one_failure(
        [Sent(T, "p", "a"), Receipted(T, "p", "a", MessagePosition(0, 5)), *later], Rules(), "before it was sent"
    )
    together: list[Event] = [
        Sent(T, "p", "a"),
        Sent(T, "q", "z"),
        Receipted(T, "p", "a", MessagePosition(0, 5)),
        *later[1:],
    ]
    assert check(together, Rules()) == []


def test_order_of_a_topic_and_of_a_key() -> None:
    swapped = [*ABC, got(1, "b"), got(0, "a")]
    assert any("saw" in line for line in check(swapped, Rules()))
    assert check(swapped, SHARED) == []
    after_redelivery = [*ABC, got(0, "a"), got(2, "c"), RedeliveryAsked(T, S, "c"), got(0, "a"), got(1, "b")]
    one_failure(after_redelivery, Rules(), "first delivery after")
    keyed = [*published("a", "b", key="k"), *published("x", key="other", start=2), *opened("c")]
    assert check([*keyed, got(2, "x"), got(0, "a"), got(1, "b")], Rules(Order.KEY)) == []
    one_failure([*keyed, got(1, "b"), got(0, "a")], Rules(Order.KEY), "first delivery after")


def test_a_key_has_one_owner_until_all_of_it_is_acked() -> None:
    keyed = [*published("a", "b", key="k"), *opened("c", "d"), got(0, "a")]
    one_failure([*keyed, got(1, "b", "d")], Rules(Order.KEY), "c still holds")
    assert check([*keyed, Acked(T, S, "c", MessagePosition(0, 0)), got(1, "b", "d")], Rules(Order.KEY)) == []
    assert check([*keyed, ConsumerLeft(T, S, "c"), got(0, "a", "d"), got(1, "b", "d")], Rules(Order.KEY)) == []


@pytest.mark.parametrize("cumulative", [False, True])
def test_a_confirmed_ack_is_final(cumulative: bool) -> None:
    before = [*ABC, got(0, "a"), *acked(0, cumulative=cumulative), ConsumerLeft(T, S, "c"), ConsumerOpened(T, S, "d")]
    one_failure([*before, got(0, "a", "d")], SHARED, "ack was confirmed")
    one_failure([*before, got(0, "a", "d")], Rules(Order.NONE, in_flight_after_ack=True), "ack was confirmed")
    one_failure([*before, Crashed(), got(0, "a", "d")], SHARED, "ack was confirmed")
    assert check([*before, Crashed(), got(0, "a", "d")], Rules(Order.NONE, acks_survive_crash=False)) == []
    assert check([*before, Sought(T, S), got(0, "a", "d")], SHARED) == []
    assert check([*before, got(1, "b", "d")], SHARED) == []


def test_an_unconfirmed_ack_does_not_bind_but_counts_as_seen() -> None:
    lost = [*ABC, got(0, "a"), Acked(T, S, "c", MessagePosition(0, 0)), Crashed(), got(0, "a")]
    assert check(lost, SHARED) == []
    skipped = [*ABC, got(2, "c"), Acked(T, S, "c", MessagePosition(0, 2), cumulative=True), DONE]
    assert check(skipped, SHARED) == []


def test_what_was_in_flight_when_the_ack_was_confirmed_may_be_excused() -> None:
    both = [*ABC, ConsumerOpened(T, S, "d"), got(0, "a"), RedeliveryAsked(T, S, "c"), *acked(0), got(0, "a", "d")]
    one_failure(both, SHARED, "ack was confirmed")
    assert check(both, Rules(Order.NONE, in_flight_after_ack=True)) == []


def test_duplicates_need_a_cause() -> None:
    first = [*ABC, ConsumerOpened(T, S, "d"), got(0, "a")]
    one_failure([*first, got(0, "a", "d")], SHARED, "without a cause, c holds it")
    one_failure([*first, Acked(T, S, "c", MessagePosition(0, 0)), got(0, "a", "d")], SHARED, "without a cause")
    one_failure([*first, ConsumerLeft(T, S, "d"), got(0, "a")], SHARED, "without a cause")
    others = RedeliveryAsked(T, S, "c", frozenset({MessagePosition(0, 1)}))
    one_failure([*first, others, got(0, "a")], SHARED, "without a cause")
    causes: list[Event] = [
        ConsumerLeft(T, S, "c"),
        RedeliveryAsked(T, S, "c"),
        RedeliveryAsked(T, S, "c", frozenset({MessagePosition(0, 0)})),
        ActiveChanged(T, S, "d"),
        Crashed(),
        Sought(T, S),
    ]
    for cause in causes:
        assert check([*first, cause, got(0, "a", "d")], SHARED) == [], cause


def test_an_ack_of_an_entry_covers_its_whole_batch() -> None:
    batch: list[Event] = []
    for index, value in enumerate(("a", "b")):
        batch += [Sent(T, "p", value), Receipted(T, "p", value, MessagePosition(0, 0, index))]
    first = Delivered(T, S, "c", MessagePosition(0, 0, 0), "a")
    second = Delivered(T, S, "c", MessagePosition(0, 0, 1), "b")
    for cumulative in (False, True):
        events = [*batch, *opened("c"), first, second, *acked(0, cumulative=cumulative), Crashed(), second]
        one_failure(events, SHARED, "ack was confirmed")
    half: list[Event] = [Acked(T, S, "c", MessagePosition(0, 0, 0)), AckConfirmed(T, S, MessagePosition(0, 0, 0))]
    assert check([*batch, *opened("c"), first, second, *half, Crashed(), second], SHARED) == []


def test_rules_by_subscription_and_the_error_text() -> None:
    swapped = [*ABC, got(1, "b"), got(0, "a")]
    assert check(swapped, {S: SHARED}) == []
    with pytest.raises(HistoryError, match=r"2 broken promises\n#\d+: c saw"):
        verify(swapped, {S: Rules()})


def _random_history(seed: int) -> list[Event]:
    """What a correct little broker on one shared subscription shows, with redeliveries and crashes."""
    rng = random.Random(seed)
    events: list[Event] = opened("c", "d")
    waiting: list[int] = []
    held: dict[int, str] = {}
    count = 0
    for _ in range(300):
        step = rng.random()
        if step < 0.3:
            events += published(f"v{count}", start=count)
            waiting.append(count)
            count += 1
        elif step < 0.7 and waiting:
            entry = waiting.pop(rng.randrange(len(waiting)))
            held[entry] = rng.choice("cd")
            events.append(got(entry, f"v{entry}", held[entry]))
        elif step < 0.9 and held:
            entry = rng.choice(sorted(held))
            events += acked(entry, held.pop(entry))
        elif step < 0.95:
            events.append(Crashed())
            waiting += held
            held.clear()
        elif held:
            entry = rng.choice(sorted(held))
            events.append(RedeliveryAsked(T, S, held.pop(entry), frozenset({MessagePosition(0, entry)})))
            waiting.append(entry)
    events += [got(entry, f"v{entry}") for entry in waiting]
    return [*events, DONE]


def test_random_correct_histories_pass_and_a_dropped_or_doubled_delivery_is_found() -> None:
    for seed in range(40):
        events = _random_history(seed)
        assert check(events, SHARED) == []
        rng = random.Random(seed)
        deliveries = [index for index, event in enumerate(events) if isinstance(event, Delivered)]
        twice = rng.choice(deliveries)
        assert check([*events[: twice + 1], *events[twice:]], SHARED)
        last = events[deliveries[-1]]
        assert isinstance(last, Delivered)
        without = [
            event for event in events if isinstance(event, Receipted) or getattr(event, "place", 0) != last.place
        ]
        assert check(without, SHARED)
