"""The life of a handle: which errors end it, how long it pauses, and that every state has a way out."""

from __future__ import annotations

import pytest

from magnetar.client.errors import ConnectionLostError, RefusedError, TlsError, WrongPortError
from magnetar.client.machines.handle_life import TRANSITIONS, Backoff, HandleLife, LifeEvent, LifeState, Pauses
from magnetar.model.errors import ServerError

LOST = ConnectionLostError("lost")


def refused(error: ServerError) -> RefusedError:
    return RefusedError("open", error, None)


def test_pauses_double_up_to_a_minute() -> None:
    """From 100 ms, with jitter (rule 6.10.1)."""
    pauses = Pauses()
    found = [pauses.next(0.0) for _ in range(12)]
    assert found[:4] == [0.1, 0.2, 0.4, 0.8] and found[-1] == 60.0
    pauses.reset()
    assert pauses.next(1.0) == pytest.approx(0.08)


def test_it_comes_back_for_ever_once_it_was_ready() -> None:
    life = HandleLife(give_up_at=10.0)
    life.opened()
    for number in range(50):
        error = (LOST, refused(ServerError.TopicNotFound), WrongPortError("no"))[number % 3]
        assert life.failed(error, 1_000.0, 0.5) is not None
        assert life.state is LifeState.PAUSED
        life.on(LifeEvent.PAUSE_OVER)
    life.opened()
    assert life.openings == 2


@pytest.mark.parametrize("error", [ServerError.ProducerFenced, ServerError.TopicTerminatedError])
def test_what_is_final_even_then(error: ServerError) -> None:
    """Rule 6.10.4."""
    life = HandleLife(give_up_at=10.0)
    life.opened()
    assert life.failed(refused(error), 1.0, 0.5) is None
    assert life.state is LifeState.FAILED and life.ended


@pytest.mark.parametrize(
    ("error", "tried_again"),
    [
        (LOST, True),
        (refused(ServerError.ServiceNotReady), True),
        (refused(ServerError.TopicNotFound), False),
        (refused(ServerError.AuthorizationError), False),
        (TlsError("no"), False),
        (WrongPortError("no"), False),
    ],
)
def test_the_first_opening(error: Exception, tried_again: bool) -> None:
    life = HandleLife(give_up_at=10.0)
    assert (life.failed(error, 0.0, 0.5) is not None) is tried_again


def test_the_first_opening_has_a_deadline() -> None:
    life = HandleLife(give_up_at=10.0)
    assert life.failed(LOST, 9.99, 0.0) is None
    assert life.error is LOST


def test_every_state_but_the_last_can_be_closed() -> None:
    for state in LifeState:
        assert (state, LifeEvent.CLOSE) in TRANSITIONS
    life = HandleLife(give_up_at=10.0)
    with pytest.raises(AssertionError, match="PAUSE_OVER while OPENING"):
        life.on(LifeEvent.PAUSE_OVER)


def test_pauses_as_they_are_wanted() -> None:
    pauses = Pauses(Backoff(1.0, 5.0))
    assert [pauses.next(0.0) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    pauses.reset()
    assert pauses.next(0.0) == 1.0
