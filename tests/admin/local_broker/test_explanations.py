"""``explain`` through REST and the command line, on a real broker."""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.cli.explain.command import explained, located
from magnetar.protocol.commands import SubType
from tests.support.real_broker import TOPIC, RealBroker, real_broker

T = "persistent://public/default/t"
URL = f"{TOPIC}/t/subscription/s"


def test_a_draining_hash_is_explained(tmp_path: Path) -> None:
    async def main() -> None:
        async with real_broker(tmp_path) as broker:
            await scenario(broker)

    asyncio.run(main())


async def got(broker: RealBroker, path: str) -> Any:
    status, answer = await broker.ask("GET", URL + path)
    assert status == 200, answer
    return answer


async def scenario(broker: RealBroker) -> None:
    client = await broker.client()
    producer = await client.producer(T)
    old = await client.subscribe(T, "s", SubType.Key_Shared, consumer_name="old")
    old.flow(100)
    keys = [f"k{i}" for i in range(20)]
    for key in keys:
        await producer.publish(b"m", key=key)
    for _ in keys:
        await old.receive()
    new = await client.subscribe(T, "s", SubType.Key_Shared, consumer_name="new")
    new.flow(100)
    for key in keys:
        await producer.publish(b"m2", key=key)
    answer = await got(broker, "/explain")
    found = [finding for finding in answer["findings"] if finding["what"] == "draining-hash"]
    assert found, answer
    assert "old still has unacknowledged entries of that hash" in found[0]["text"]
    assert answer["type"] == "Key_Shared"
    assert {consumer["consumerName"] for consumer in answer["consumers"]} == {"old", "new"}
    assert found[0]["text"] in "\n".join(explained(answer))
    drained = 0
    for key in keys:
        where = await got(broker, f"/unacknowledged?key={key}")
        assert where["keys"] == [key]
        assert len(where["unacknowledged"]) + len(where["waiting"]) == 2
        same = await got(broker, f"/unacknowledged?hash={where['hash']}")
        assert key in same["keys"]
        if where["draining"]:
            drained += 1
            assert (where["owner"], where["heldBy"]) == ("new", "old")
            assert len(where["waiting"]) == 1
            assert "held by old" in located(where)[0]
    assert drained
    assert (await broker.ask("GET", f"{URL}/unacknowledged"))[0] == 400
    assert (await broker.ask("GET", f"{TOPIC}/t/subscription/none/explain"))[0] == 404
    await client.subscribe(T, "shared", SubType.Shared)
    assert (await broker.ask("GET", f"{TOPIC}/t/subscription/shared/unacknowledged?hash=1"))[0] == 412
    await client.close()


def test_a_partitioned_topic_and_a_missing_one_have_different_errors(tmp_path: Path) -> None:
    async def main() -> None:
        async with real_broker(tmp_path) as broker:
            assert (await broker.ask("PUT", f"{TOPIC}/parted/partitions", 3))[0] == 204
            for path in ("explain", "unacknowledged?key=k"):
                status, answer = await broker.ask("GET", f"{TOPIC}/parted/subscription/s/{path}")
                assert status == 404
                assert "has 3 partitions" in answer["reason"]
                assert "persistent://public/default/parted-partition-0" in answer["reason"]
                assert "not found" in (await broker.ask("GET", f"{TOPIC}/none/subscription/s/{path}"))[1]["reason"]

    asyncio.run(main())


def test_a_subscription_without_a_type_is_described_in_words() -> None:
    """One that was created over REST has none until its first consumer; the page said None."""
    answer: dict[str, Any] = {
        "findings": [],
        "type": None,
        "msgBacklog": 3,
        "msgDelayed": 0,
        "msgInReplay": 0,
        "unackedMessages": 0,
        "markDeletePosition": "8:-1",
        "nextNewMessage": "8:0",
        "consumers": [],
    }
    assert explained(answer)[1].startswith("no type yet, as no consumer has been there, backlog 3 entries")


def test_command_line_says_what_is_wrong() -> None:
    runner = CliRunner()
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        result = runner.invoke(app, ["explain", "subscription", T, "s", "--admin-url", "http://127.0.0.1:9"])
    assert result.exit_code == 1
    assert "http://127.0.0.1:9 does not answer: Connection refused" in result.output + errors.getvalue()


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "subscription", "--help"]])
def test_explain_is_in_the_help_pages(arguments: list[str]) -> None:
    assert "explain" in CliRunner().invoke(app, arguments).output
