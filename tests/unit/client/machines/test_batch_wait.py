"""How long open batches wait: not at all where nothing would come, and never beyond their delay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.machines.outgoing.batch_wait import NEVER, BatchWait
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.client.machines.outgoing.publication import Publication
from magnetar.client.machines.outgoing.publication_limits import PublicationLimits
from magnetar.protocol import commands as c


def waits(rate: float, delay: float, messages: int = 1_000) -> float:
    """The share of messages of a steady sender that begin or join a batch which waits, after a while."""
    wait, count, late = BatchWait(delay), 0, 0
    for number in range(messages):
        now = number / rate
        if count and wait.until <= now:
            wait.end(count)
            count = 0
        if not count:
            wait.begin(now)
        count += 1
        late += number > messages // 2 and wait.until > wait.since
    return late / (messages - messages // 2 - 1)


def test_who_sends_little_does_not_wait() -> None:
    """The delay is an upper bound (rule 3.5.1): it is for batches that fill."""
    assert waits(rate=1_000, delay=0.001) == 0
    assert waits(rate=300, delay=0.01) == 0
    assert waits(rate=1_000, delay=0.01) == 1
    assert waits(rate=100_000, delay=0.001) == 1


def test_a_long_delay_is_wanted() -> None:
    """Whoever asks for more than the usual delay gets it, at any rate."""
    wait = BatchWait(1.0)
    wait.begin(5.0)
    assert wait.until == 6.0
    wait.hurry(any_delay=False, idle=True)
    assert wait.until == 6.0
    wait.hurry(any_delay=True, idle=True)
    assert wait.until == 5.0


def test_two_messages_that_a_late_timer_brings_together_do_not_make_the_third_wait() -> None:
    """Timers of an event loop are late by up to a millisecond: of two neighbours the rate cannot be told."""
    wait = BatchWait(0.001)
    for now in (0.000, 0.001, 0.002, 0.0039, 0.0040, 0.005, 0.0069, 0.0070, 0.0071, 0.008):
        wait.begin(now)
        assert wait.until == now
        wait.end(1)


@given(
    st.floats(0, 2),
    st.lists(
        st.tuples(st.sampled_from(["begin", "end", "hurry", "idle"]), st.floats(0, 1), st.integers(0, 2_000)),
        max_size=30,
    ),
)
def test_never_beyond_the_delay(delay: float, steps: list[tuple[str, float, int]]) -> None:
    wait, now, begun = BatchWait(delay), 0.0, NEVER
    for action, pause, messages in steps:
        now += pause
        if action == "begin" and begun == NEVER:
            wait.begin(now)
            begun = now
        elif action == "end":
            assert wait.end(messages if begun != NEVER else 0) == begun
            begun = NEVER
        elif action == "hurry" and begun != NEVER:
            wait.hurry(any_delay=bool(messages % 2), idle=bool(messages % 3))
        elif action == "idle":
            wait.nothing_else()
        assert wait.since == begun
        assert begun <= wait.until <= begun + delay


@pytest.mark.parametrize("somebody_waits", [True, False])
def test_what_somebody_waits_for_goes_with_the_receipts_of_what_is_before_it(somebody_waits: bool) -> None:
    """Many who await `send` share a batch while the one before is on its way, and do not wait for its delay as well."""
    queue = Publication("t", EntryMaker("p"), PublicationLimits(batching=True, batch_delay=1.0), 1 << 20)
    queue.opened(0)
    queue.add(OutgoingMessage(b"first"), None, 10.0, 1)
    queue.hurry(any_delay=True)
    assert queue.batch_due == 10.0, "nothing else is on its way"
    queue.close_batches(10.0, 1)
    assert queue.frames(1 << 20)
    queue.add(OutgoingMessage(b"second"), None, 10.1, 1)
    if somebody_waits:
        queue.hurry(any_delay=True)
    assert queue.batch_due == 11.1
    queue.receipted(c.CommandSendReceipt(0, 0, c.MessageIdData(1, 0), 0))
    assert queue.batch_due == (10.1 if somebody_waits else 11.1)
    queue.check()
