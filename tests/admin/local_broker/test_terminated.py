"""A terminated topic says so, and names its end by one id for ever (rules 4.2.6, 4.7.1, 11.4.5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

URL = f"{TOPIC}/t"


@pytest.mark.parametrize("messages", [0, 2])
def test_the_end_has_one_id_through_unloads_and_restarts(tmp_path: Path, messages: int) -> None:
    ends: list[Any] = []

    async def ended(broker: RealBroker) -> None:
        ends.append(await broker.ask("POST", f"{URL}/terminate"))
        _, stats = await broker.ask("GET", f"{URL}/internalStats")
        end = ends[-1][1]
        place = f"{end['ledgerId']}:{end['entryId']}"
        assert (stats["state"], stats["lastConfirmedEntry"]) == ("Terminated", place)
        assert await broker.ask("GET", f"{URL}/lastMessageId") == (200, end)

    async def first(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL))[0] == 204
        producer = await (await broker.client()).producer("persistent://public/default/t")
        for _ in range(messages):
            await producer.publish(b"x")
        assert (await broker.ask("GET", f"{URL}/internalStats"))[1]["state"] == "LedgerOpened"
        for _ in range(2):
            await ended(broker)
            assert (await broker.ask("PUT", f"{URL}/unload"))[0] == 204

    run_on_broker(tmp_path, first)
    run_on_broker(tmp_path, ended)
    assert ends == [(200, {**ends[0][1], "entryId": messages - 1, "partitionIndex": -1})] * 3


def test_the_end_is_named_after_everything_was_truncated(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        producer = await (await broker.client()).producer("persistent://public/default/t")
        await producer.publish(b"x")
        end = await broker.ask("POST", f"{URL}/terminate")
        assert (await broker.ask("DELETE", f"{URL}/truncate"))[0] == 204
        assert await broker.ask("POST", f"{URL}/terminate") == end
        _, info = await broker.ask("GET", f"{URL}/internal-info")
        assert info["terminatedPosition"] == {name: end[1][name] for name in ("ledgerId", "entryId")}
        nothing = (await broker.ask("GET", f"{URL}/lastMessageId"))[1]
        assert (nothing["ledgerId"], nothing["entryId"]) == (-1, -1), "there is no message any more"

    run_on_broker(tmp_path, scenario)
