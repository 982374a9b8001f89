"""A few rounds of :mod:`tests.crash.rounds`, and proof that its judge condemns what it should."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.crash.client_history import ClientHistory, StatedMessage, message, stated_message
from tests.crash.rounds import Rounds


@pytest.mark.slow
def test_eight_rounds_without_a_violation(tmp_path: Path) -> None:
    async def main() -> Rounds:
        rounds = Rounds(tmp_path / "data", seed=20)
        for number in range(1, 9):
            await rounds.play(number)
        await rounds.last_look()
        return rounds

    rounds = asyncio.run(main())
    assert rounds.history.violations == []
    assert rounds.history.counts["receipted"] > 100
    assert rounds.history.counts["acks answered"] > 10


def a_story() -> ClientHistory:
    history = ClientHistory()
    for i in range(3):
        history.topic("t").attempted.add(("p", i))
        history.receipted("t", (1, i), StatedMessage("p", i, 30))
    return history


def found(*sequences: int) -> list[tuple[tuple[int, int], bytes]]:
    return [((1, i), message("p", i, 30)) for i in sequences]


def test_the_whole_topic_is_no_violation() -> None:
    history = a_story()
    history.looked("t", found(0, 1, 2), (1, 0))
    assert history.violations == []


def test_a_missing_message_is_one() -> None:
    history = a_story()
    history.looked("t", found(0, 2), (1, 0))
    assert "is missing" in history.violations[0]


def test_a_missing_front_is_one_until_everybody_has_acknowledged_it() -> None:
    history = a_story()
    history.looked("t", found(1, 2), (1, 1))
    assert len(history.violations) == 1
    history = a_story()
    history.subscription("t", "s").sure.add((1, 0))
    history.looked("t", found(1, 2), (1, 1))
    assert history.violations == []


def test_swapped_damaged_repeated_and_invented_messages_are_violations() -> None:
    for wrong in (
        [((1, 0), message("p", 1, 30)), ((1, 1), message("p", 0, 30)), *found(2)],
        [((1, 0), message("p", 0, 30)[:-1] + b"!"), *found(1, 2)],
        [*found(0, 1, 2), ((1, 3), message("p", 2, 30))],
        [*found(0, 1, 2), ((1, 3), message("q", 0, 30))],
    ):
        history = a_story()
        history.looked("t", wrong, (1, 0))
        assert history.violations


def test_an_acknowledgment_undone_is_a_violation_only_if_it_had_to_hold() -> None:
    history = a_story()
    subscription = history.subscription("t", "s")
    subscription.said.update({(1, 0): 10.0, (1, 1): 19.5})
    history.killed(20.0, clean=False)
    history.killed(30.0, clean=False)
    history.killed(40.0, clean=True)
    history.delivered("t", "s", (1, 1), message("p", 1, 30))
    assert history.violations == []
    history.delivered("t", "s", (1, 0), message("p", 0, 30))
    assert "came back" in history.violations[0]


def test_a_message_knows_its_own_content() -> None:
    payload = message("p", 5, 1000)
    assert len(payload) == 1000
    assert stated_message(payload) == StatedMessage("p", 5, 1000)
    for at in (0, 3, 20, 999):
        assert stated_message(payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]) != StatedMessage(
            "p", 5, 1000
        )
