"""Conversations over WebSocket: ours is Apache Pulsar's 4.0.8, which ``apache_pulsar.json`` has, but for what is named.

``python -m tests.support.websocket_scenarios URL`` records it from a fresh broker.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_scenarios import SCENARIOS, play

RECORDED = json.loads(Path(__file__).with_name("apache_pulsar.json").read_text("utf-8"))
REFUSED = {
    "batchingMaxMessages=x": "a number that is none is refused; Pulsar reads it only if batches are on",
    "maxPendingMessages=-1": "below 0 is refused; Pulsar passes it by",
    "encryptionKeys=a": "400, as every other query; 500 there",
    "messageId=junk": "the same",
    "/reader/persistent/public/default/r?receiverQueueSize=x": "the same",
    "/producer/persistent/public/default": "404: there is no such path; 500 there",
    "/consumer/persistent/public/default/x": "404: there is no such path; 400 there",
    "/ws/producer/": "501: paths with a cluster in them are not served",
}
"""Ends or beginnings of refused paths whose status is another one, and why (docs/differences.md)."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What our broker says: all conversations at once, on topics of their own."""
    said: dict[str, Any] = {}

    async def scenario(broker: RealBroker) -> None:
        url = broker.node.broker.service.web_service_url
        found = await asyncio.gather(*(asyncio.to_thread(play, steps, url) for steps in SCENARIOS.values()))
        said.update(zip(SCENARIOS, found, strict=True))

    run_on_broker(tmp_path_factory.mktemp("data"), scenario)
    return said


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_conversation(name: str, ours: dict[str, Any]) -> None:
    assert [comparable(line) for line in ours[name]] == [comparable(line) for line in RECORDED[name]]


def comparable(line: list[Any]) -> list[Any]:
    """A line without texts that are Java's, and without the differences on purpose."""
    if line[1] == "refused" or line[1] == "open":
        if is_different(line[0]):
            return [line[0], "refused"]
        return line[:3]
    if line[1] == "closed":
        # Pulsar closes with the numbers 3 and so on, which no WebSocket may carry: its peers see a lost connection
        return [line[0], "closed", {1007: "lost"}.get(line[2], line[2])]
    frame = line[1]
    if isinstance(frame, dict):
        shown = {key: value for key, value in frame.items() if key not in ("errorMsg",)}
        properties = shown.get("properties")
        if isinstance(properties, dict):
            moved = {"ORIGIN_MESSAGE_ID", "ORIGIN_MESSAGE_IDY_TIME"}
            shown["properties"] = {key: "id" if key in moved else value for key, value in sorted(properties.items())}
        return [line[0], list(shown.items())]
    return line


def is_different(path: str) -> bool:
    return any(path.endswith(part) or path.startswith(part) for part in REFUSED)


def test_every_difference_is_one(ours: dict[str, Any]) -> None:
    there = {line[0]: line[1:3] for line in RECORDED["refused"]}
    lines = [line for line in ours["refused"] if is_different(line[0])]
    assert len(lines) == len(REFUSED)
    assert [line[0] for line in lines if line[1:3] == there[line[0]]] == []
