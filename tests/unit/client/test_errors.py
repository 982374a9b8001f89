"""A refusal always says why, also when the broker only gives the code."""

from __future__ import annotations

import pytest

from magnetar.client.errors import RefusedError
from magnetar.model.errors import ServerError


@pytest.mark.parametrize("message", ["", None])
def test_a_code_without_a_message_gets_a_reason(message: str | None) -> None:
    assert str(RefusedError("look up t", ServerError.TopicNotFound, message)) == (
        "look up t: TopicNotFound: there is no such topic; look at its name and namespace, or create it"
    )
    assert "the broker gives no reason" in str(RefusedError("x", ServerError.UnknownError, message))
    assert str(RefusedError("x", ServerError.TopicNotFound, "gone")) == "x: TopicNotFound: gone"
