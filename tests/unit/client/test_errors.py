"""A refusal has a class of its own for each code, and always says why and what to do."""

from __future__ import annotations

import pickle

import pulsar.exceptions  # type: ignore[import-untyped]  # the official client carries no types
import pytest

import magnetar.exceptions
from magnetar.client.errors import ClientError, RefusedError, refusal
from magnetar.client.refusals import REFUSALS
from magnetar.model.errors import MagnetarError, ServerError


@pytest.mark.parametrize("message", ["", None])
def test_a_code_without_a_message_gets_a_reason(message: str | None) -> None:
    assert str(RefusedError("look up t", ServerError.TopicNotFound, message)) == (
        "look up t: TopicNotFound: there is no such topic; look at its name and namespace, or create it"
    )
    assert "the broker gives no reason" in str(RefusedError("x", ServerError.UnknownError, message))


def test_the_next_step_is_the_best_one_that_is_known() -> None:
    assert str(RefusedError("x", ServerError.TopicNotFound, "gone", host="h:1")) == (
        "x: TopicNotFound: gone; look at its name and namespace, or create it (broker at h:1)"
    )
    assert str(RefusedError("x", ServerError.TopicNotFound, "gone", "look elsewhere")) == (
        "x: TopicNotFound: gone; look elsewhere"
    )


@pytest.mark.parametrize("code", ServerError)
def test_each_code_has_a_class_of_its_own(code: ServerError) -> None:
    error = RefusedError("ask", code, "no", None, "host:1")
    assert type(error) is refusal(code) is getattr(magnetar.exceptions, REFUSALS[code].name)
    assert isinstance(error, RefusedError)
    assert isinstance(error, ClientError)
    assert error.code is code
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.host) == (type(error), str(error), "host:1")


def test_no_two_codes_share_a_class() -> None:
    assert len({refusal(code) for code in ServerError}) == len(ServerError)


def test_every_name_of_the_official_client_is_there() -> None:
    theirs = {name for name in dir(pulsar.exceptions) if name[0].isupper()}
    assert len(theirs) > 40 and theirs <= set(dir(magnetar.exceptions))
    for name in theirs:
        assert issubclass(getattr(magnetar.exceptions, name), MagnetarError)
