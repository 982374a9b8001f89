"""When a message comes again and what is copied where it does not: the tables of Pulsar's documentation, models, and
letters as the Java client writes them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.redelivery import letters
from magnetar.client.machines.redelivery.ack_timeouts import AckTimeoutLimits, AckTimeouts
from magnetar.client.machines.redelivery.dead_letter_policy import (
    ConsumerDeadLetterPolicy,
    dead_letter_topic,
    older_name,
    retry_letter_topic,
)
from magnetar.client.machines.redelivery.due_entries import NEVER, DueEntries
from magnetar.client.machines.redelivery.last_deliveries import (
    ENTRIES_MAX,
    DeadMessage,
    DeathCause,
    LastDeliveries,
)
from magnetar.client.machines.redelivery.negative_acks import DELAY_MIN, PRECISION, NegativeAcknowledgements
from magnetar.client.machines.redelivery.redelivery_backoff import MultiplierRedeliveryBackoff, seconds_of
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError
from magnetar.protocol.entries import EntryMetadata

TOPIC = "persistent://public/default/my-topic"
NO_CHANCE = random.Random(1).random


def message(
    place: tuple[int, int] = (1, 0), *, index: int = -1, size: int = 0, count: int = 0, partition: int = -1,
    chunks: tuple[tuple[int, int], ...] = (), **metadata: object,
) -> Message:  # fmt: skip
    topic = TOPIC if partition < 0 else f"{TOPIC}-partition-{partition}"
    known = EntryMetadata("producer", 0, 1_234, **metadata)  # type: ignore[arg-type]  # the tests name fields
    return Message(Envelope(topic, partition, place, known, size, count, None, chunks), b"payload", index, None)


def test_the_table_of_the_negative_backoff() -> None:
    """Rules 0.19 and 6.2.4: 1, 2, 4, 8, 16, 32, 60 and 60 s."""
    backoff = MultiplierRedeliveryBackoff(1_000, 60_000, 2)
    assert [backoff.next(count) / 1_000 for count in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    negative = NegativeAcknowledgements(60.0, seconds_of(backoff, NO_CHANCE))
    for count, delay in enumerate([1, 2, 4, 8, 16, 32, 60, 60]):
        negative.add([(1, count)], 0.0, negative.delay_of(count))
        assert delay <= negative.next_due <= delay + PRECISION
        assert negative.take_due(negative.next_due) == [(1, count)]


def test_the_table_of_the_timeout_backoff() -> None:
    """Rule 6.3.3: 11, 12, 14, 18, 26, 42, 70 and 70 s, and up to a tick more."""
    limits = AckTimeoutLimits.of_ms(10_000, 1_000, seconds_of(MultiplierRedeliveryBackoff(1_000, 60_000, 2), NO_CHANCE))
    assert limits is not None
    for count, delay in enumerate([11, 12, 14, 18, 26, 42, 70, 70]):
        timeouts = AckTimeouts(limits)
        timeouts.received((1, 1), count, 0.25)
        assert delay + 0.25 <= timeouts.next_due <= delay + 1.25


def test_a_backoff_has_the_defaults_of_java_and_no_overflow() -> None:
    backoff = MultiplierRedeliveryBackoff()
    assert [backoff.next(count) for count in (-5, 0, 1, 6, 10**9)] == [10_000, 10_000, 20_000, 600_000, 600_000]
    assert MultiplierRedeliveryBackoff(0, 5, 2).next(9) == 0
    spread = seconds_of(MultiplierRedeliveryBackoff(1_000, 60_000, 2, jitter=0.5), random.Random(1).random)
    found = {spread(1) for _ in range(50)}
    assert len(found) > 40 and all(1 <= delay <= 2 for delay in found)


@pytest.mark.parametrize(
    "wrong", [(-1, 5, 2), (6, 5, 2), (1, 5, 1), (1, 5, float("nan")), (1, float("inf"), 2), (1, 5, 2, 2)]
)
def test_a_backoff_that_is_none_is_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(InvalidValueError):
        MultiplierRedeliveryBackoff(*wrong)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), None, "1"])
def test_a_delay_that_is_none_is_refused(wrong: object) -> None:
    class Mine:
        def next(self, redelivery_count: int) -> float:
            return wrong  # type: ignore[return-value]

    with pytest.raises(InvalidValueError, match="Mine gives"):
        seconds_of(Mine(), NO_CHANCE)(3)
    with pytest.raises(InvalidValueError, match="no backoff"):
        seconds_of(7, NO_CHANCE)  # type: ignore[arg-type]


def test_negative_acknowledgements_are_grouped_and_never_early() -> None:
    """Delays differ by message; an entry has one item, at the earlier time (rules 6.2.2 and 6.2.3)."""
    negative = NegativeAcknowledgements(60.0)
    negative.add([(1, 1)], 0.0, 60.0)
    negative.add([(1, 2)], 0.1, 60.0)
    negative.add([(1, 3)], 0.0, 1.0)
    negative.add([(1, 1)], 0.0, 5.0)
    negative.add([(1, 1)], 0.0, 50.0)
    assert 1.0 <= negative.next_due <= 1.256
    assert negative.take_due(1.256) == [(1, 3)]
    assert 5.0 <= negative.next_due <= 5.256 and negative.take_due(5.256) == [(1, 1)]
    negative.add([(1, 4)], 7.0, 0.0)
    assert negative.take_due(7.0) == [(1, 4)]
    negative.drop((1, 2))
    assert negative.next_due == NEVER and negative.take_due(1e9) == []
    assert NegativeAcknowledgements(60.0, lambda _: 0.0).delay_of(0) == DELAY_MIN


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "drop", "until", "due", "clear"]), st.integers(0, 6), st.floats(0, 10, width=16)
        )
    )
)
def test_a_model_of_what_is_due(steps: list[tuple[str, int, float]]) -> None:
    due, model = DueEntries(), dict[tuple[int, int], float]()
    for what, number, time in steps:
        place = (1, number)
        if what == "add":
            due.add(place, time)
            model[place] = min(model.get(place, NEVER), time)
        elif what == "drop":
            due.drop(place)
            model.pop(place, None)
        elif what == "until":
            due.drop_until(place)
            model = {one: when for one, when in model.items() if one > place}
        elif what == "clear":
            due.clear()
            model.clear()
        else:
            found = due.take_due(time)
            assert [model[one] for one in found] == sorted(model[one] for one in found)
            assert set(found) == {one for one, when in model.items() if when <= time}
            model = {one: when for one, when in model.items() if when > time}
        due.check()
        assert due.next_due == min(model.values(), default=NEVER)
        assert len(due) == len(model) and all(one in due for one in model)


def test_what_waits_is_bounded_and_nothing_is_forgotten() -> None:
    due = DueEntries(waiting_max=3)
    for number in range(5):
        due.add((1, number), 100.0 - number)
    assert due.take_due(0.0) == [(1, 4), (1, 3)] and due.next_due == 98.0
    for number in range(10_000):  # refused with ever longer delays, and acknowledged
        due.add((2, number), 1_000.0 + number)
        due.drop((2, number))
    assert len(due._times) < 200


def test_the_time_of_an_entry_begins_with_its_first_message() -> None:
    """Rule 6.3.2: between the timeout and a tick more; what was said ends it."""
    limits = AckTimeoutLimits.of_ms(2_000, 1_000, None)
    assert limits is not None and AckTimeoutLimits.of_ms(0, 1_000, None) is None
    timeouts = AckTimeouts(limits)
    for number in range(3):
        timeouts.received((1, number), 0, number + 0.5)
    timeouts.received((1, 0), 0, 2.4)
    assert timeouts.next_due == 3.0 and timeouts.take_due(2.99) == []
    timeouts.drop((1, 1))
    assert timeouts.take_due(3.0) == [(1, 0)]
    timeouts.received((1, 9), 0, 3.0)
    timeouts.drop_until((1, 2))
    assert timeouts.next_due == 5.0


@pytest.mark.parametrize("wrong", [(999, 1_000), (-1, 1_000), (1_000, 0), (float("nan"), 1_000), (1e18, 1_000)])
def test_a_timeout_below_a_second_is_refused(wrong: tuple[float, float]) -> None:
    """As Java's client does; 0 is off (rule 6.3.1)."""
    with pytest.raises(InvalidValueError):
        AckTimeoutLimits.of_ms(*wrong, None)


def test_a_backoff_without_a_timeout_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="unacked_messages_timeout_ms"):
        AckTimeoutLimits.of_ms(None, 1_000, lambda _: 1.0)


def test_the_names_of_retry_and_dead_letter_topics() -> None:
    """Of the full name without a partition (rules 0.8, 6.4.1, 6.4.2 and 6.5.1)."""
    for topic in ("my-topic", TOPIC, f"{TOPIC}-partition-3"):
        assert retry_letter_topic(topic, "my-sub") == "persistent://public/default/my-topic-my-sub-RETRY"
        assert dead_letter_topic(topic, "my-sub") == "persistent://public/default/my-topic-my-sub-DLQ"
        assert older_name(topic, "my-sub", "RETRY") == "persistent://public/default/my-sub-RETRY"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_redeliver_count": 0}, {"max_redeliver_count": 1 << 31}, {"max_redeliver_count": None},
        {"max_redeliver_count": 1, "dead_letter_topic": "t-partition-0"},
        {"max_redeliver_count": 1, "retry_letter_topic": "a://b"},
        {"max_redeliver_count": 1, "initial_subscription_name": ""},
    ],
)  # fmt: skip
def test_a_policy_that_is_none_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((InvalidValueError, InvalidTopicNameError)):
        ConsumerDeadLetterPolicy(**wrong)  # type: ignore[arg-type]


def test_only_what_was_refused_of_a_last_delivery_is_dead() -> None:
    """Others of its batch stay with the application (rule 6.5.2: once more at the maximum, then never)."""
    last = LastDeliveries(3)
    batch = [message((1, 7), index=index, size=3, count=3) for index in range(3)]
    assert last.arrived((1, 7), 3, batch) == []
    last.refused((1, 7), 1, "broken")
    last.refused((1, 8), 0, None)
    dead, again = last.split([(1, 7), (1, 8)], DeathCause.NEGATIVE_ACK)
    assert dead == [DeadMessage(batch[1], DeathCause.NEGATIVE_ACK, "broken")] and again == [(1, 8)]
    last.handed_out((1, 7), 0)
    dead, again = last.split([(1, 7)], DeathCause.ACK_TIMEOUT)
    assert [one.message for one in dead] == [batch[0]] and again == []
    assert last.split([(1, 7)], DeathCause.ACK_TIMEOUT) == ([], [])
    last.done((1, 7))
    assert last.split([(1, 7)], DeathCause.ACK_TIMEOUT) == ([], [(1, 7)])


def test_what_was_delivered_too_often_is_dead_on_arrival() -> None:
    last = LastDeliveries(3)
    one = message(count=4)
    assert last.arrived((1, 0), 4, [one]) == [DeadMessage(one, DeathCause.DELIVERIES)]
    for number in range(ENTRIES_MAX + 1):
        last.arrived((2, number), 3, [one])
    assert last.split([(2, 0)], DeathCause.ACK_TIMEOUT) == ([], [(2, 0)])


def test_the_chunks_of_a_dead_message_do_not_come_again() -> None:
    last = LastDeliveries(1)
    whole = message((1, 2), count=1, chunks=((1, 0), (1, 2)))
    last.arrived((1, 2), 1, [whole])
    last.refused((1, 2), -1, None)
    assert last.split([(1, 0), (1, 2), (1, 5)], DeathCause.NEGATIVE_ACK) == (
        [DeadMessage(whole, DeathCause.NEGATIVE_ACK)],
        [(1, 5)],
    )


def test_a_retry_letter_is_the_one_of_java() -> None:
    """Rule 6.4.4, with the example of Pulsar's documentation; later hops keep where it came from."""
    first = message(
        (1, 0),
        partition=-1,
        index=0,
        size=2,
        partition_key="k",
        ordering_key=b"o",
        event_time=77,
        properties=(("a", "b"),),
    )
    found = letters.retry_properties(first, "my-sub", 3_000, {"mine": "1"})
    assert found == {
        "ORIGIN_MESSAGE_ID": "1:0:-1:0", "ORIGIN_MESSAGE_IDY_TIME": "1:0:-1:0", "REAL_TOPIC": TOPIC,
        "REAL_SUBSCRIPTION": "my-sub", "RECONSUMETIMES": "1", "DELAY_TIME": "3000", "a": "b", "mine": "1",
    }  # fmt: skip
    copy = letters.retry_letter(first, found, 5_000)
    assert (copy.payload, copy.key, copy.ordering_key, copy.event_time, copy.deliver_at) == (
        b"payload",
        "k",
        b"o",
        77,
        5_000,
    )
    assert [name for name, _ in copy.properties] == sorted(found)
    second = message((9, 9), properties=copy.properties)
    later = letters.retry_properties(second, "my-sub", 0, None, ValueError("bad"))
    assert later == found | {
        "RECONSUMETIMES": "2", "DELAY_TIME": "0", "EXCEPTION_CLASS": "builtins.ValueError", "EXCEPTION_MESSAGE": "bad",
    }  # fmt: skip


@pytest.mark.parametrize("written", ["", "-3", "x", "1e3", "9" * 30, "²"])
def test_a_count_of_retries_that_is_no_number_counts_as_none(written: str) -> None:
    one = message(properties=(("RECONSUMETIMES", written),))
    assert letters.retry_properties(one, "s", 0)["RECONSUMETIMES"] == "1"


def test_a_dead_letter_says_where_it_came_from_and_why() -> None:
    """Rule 6.5.3: Java's properties, then ours; the topic with its partition."""
    one = message((5, 6), partition=2, count=3, partition_key="aw==", partition_key_b64_encoded=True, null_value=True)
    copy = letters.dead_letter(DeadMessage(one, DeathCause.NEGATIVE_ACK, KeyError("x" * 5_000)), "sub", "worker")
    assert copy.key == "aw==" and copy.key_is_base64 and copy.null_value
    found = dict(copy.properties)
    assert len(found.pop("EXCEPTION_MESSAGE")) == letters.EXCEPTION_TEXT_MAX
    assert found == {
        "ORIGIN_MESSAGE_ID": "5:6:2", "ORIGIN_MESSAGE_IDY_TIME": "5:6:2", "REAL_TOPIC": f"{TOPIC}-partition-2",
        "REAL_SUBSCRIPTION": "sub", "DEAD_LETTER_CAUSE": "negative acknowledgement", "DEAD_LETTER_DELIVERIES": "4",
        "DEAD_LETTER_CONSUMER": "worker", "ORIGIN_PUBLISH_TIME": "1234", "EXCEPTION_CLASS": "builtins.KeyError",
    }  # fmt: skip


def test_an_error_that_cannot_be_printed_is_named_all_the_same() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    found = dict(letters.dead_letter(DeadMessage(message(), DeathCause.REJECTED, Silent()), "s").properties)
    assert found["EXCEPTION_CLASS"].endswith("Silent") and found["EXCEPTION_MESSAGE"] == ""


def test_the_id_of_a_message_in_chunks_names_both_ends() -> None:
    """The first chunk, then the last one (rule 3.6.3)."""
    one = message((4, 9), chunks=((4, 7), (4, 8), (4, 9)))
    assert letters.origin_text(one.message_id()) == "4:7:-1;4:9:-1"
