"""How many entries of one connection may be on their way through non-persistent topics (rule 13.3)."""

from __future__ import annotations

import pytest

from magnetar.broker.topic.nonpersistent.fan_out import InFlight


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_one_more_than_the_limit_is_on_its_way_and_whoever_is_refused_is_not_counted(limit: int) -> None:
    flying = InFlight(limit)
    assert [flying.enter("a") for _ in range(limit + 4)] == [True] * (limit + 1) + [False] * 3
    assert len(flying) == limit + 1
    assert flying.enter("b"), "another connection has entries of its own"
    flying.leave("a", 1)
    assert [flying.enter("a"), flying.enter("a")] == [True, False]
    flying.leave("a", limit + 1)
    flying.leave("b", 1)
    assert (len(flying), flying._entries) == (0, {}), "a connection that is gone leaves nothing"
    assert flying.enter("a")
