"""A broker under load is backed up by the command, restored elsewhere and read: the same bytes at the same places."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from magnetar.aio import Client, ConsumerType, InitialPosition, MessageId
from magnetar.app import main
from magnetar.cli.backup import command as backup_command
from magnetar.cli.restore import command as restore_command
from tests.support.live_broker import HOST, free_port, live_broker

TOPICS = ("one", "two")


async def called(app: Any, *arguments: str) -> tuple[int, str, str]:
    done = await asyncio.to_thread(CliRunner().invoke, app, list(arguments))
    return done.exit_code, done.stdout, done.stderr


class Load:
    """Publishes to both topics until it is told to stop, and knows what was receipted where."""

    def __init__(self) -> None:
        self.receipted: dict[str, dict[tuple[int, int], bytes]] = {topic: {} for topic in TOPICS}
        self.stopped = False

    async def publish(self, client: Client, topic: str) -> None:
        async with await client.create_producer(topic, batching_enabled=False) as producer:
            number = 0
            while not self.stopped:
                data = b"%s %d " % (topic.encode(), number) + os.urandom(2_000)
                place = await producer.send(data)
                self.receipted[topic][place.ledger_id(), place.entry_id()] = data
                number += 1
                await asyncio.sleep(0.004)  # what comes is read one by one in the end


async def read(client: Client, topic: str) -> dict[tuple[int, int], bytes]:
    found = {}
    reader = await client.create_reader(topic, MessageId.earliest)
    while await reader.has_message_available():
        message = await reader.read_next()
        place = message.message_id()
        found[place.ledger_id(), place.entry_id()] = message.data()
    return found


def test_a_broker_under_load(tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    (tmp_path / "restored").mkdir()
    web = f"http://{HOST}:{(port := free_port())}"
    load = Load()

    async def live(url: str) -> tuple[dict[str, dict[tuple[int, int], bytes]], list[Any]]:
        async with Client(url) as client:
            work = [asyncio.create_task(load.publish(client, topic)) for topic in TOPICS]
            consumer = await client.subscribe(
                "one", "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest
            )
            for number in range(50):
                message = await consumer.receive(timeout_millis=10_000)
                if number % 2:
                    await consumer.acknowledge(message)
            before = {topic: dict(found) for topic, found in load.receipted.items()}
            answers = [await called(backup_command.app, "monday", "--admin-url", web, "--json")]
            load.stopped = True
            await asyncio.gather(*work)
            answers += [await called(backup_command.app, name, "--admin-url", web) for name in ("monday", "../x")]
            return before, answers

    settings = {"defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}
    with live_broker(tmp_path, webServicePort=port, backupDirectory=tmp_path / "backups", **settings) as broker:
        before, answers = asyncio.run(live(broker.url))
    assert answers[0][0] == 0, answers[0]
    assert json.loads(answers[0][1])["status"] == "SUCCESS"
    assert answers[1][0] == 1 and "exists; choose another name" in answers[1][2]
    assert answers[2][0] == 1 and "cannot be the name of a backup" in answers[2][2]
    assert [one.name for one in (tmp_path / "backups").iterdir()] == ["monday"]
    backup = tmp_path / "backups" / "monday"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in backup.iterdir()} == {0o600}
    data = tmp_path / "restored" / "data"
    assert asyncio.run(called(restore_command.app, str(backup), "--data", str(data)))[0] == 0
    checked = asyncio.run(called(main.app, "verify", str(data)))
    assert checked[0] == 0 and "no damage found" in checked[1], checked

    async def restored(url: str) -> tuple[dict[str, dict[tuple[int, int], bytes]], set[bytes]]:
        async with Client(url) as client:
            found = {topic: await read(client, topic) for topic in TOPICS}
            consumer = await client.subscribe("one", "s", ConsumerType.Shared)
            return found, {(await consumer.receive(timeout_millis=10_000)).data() for _ in range(25)}

    with live_broker(tmp_path / "restored") as broker:
        found, come_again = asyncio.run(restored(broker.url))
    for topic in TOPICS:
        assert before[topic].items() <= found[topic].items()
        assert found[topic].items() <= load.receipted[topic].items()
        assert len(found[topic]) > 25
    first = list(load.receipted["one"].values())[:50]
    assert come_again == set(first[::2]), "what was acknowledged stays so, and what was not comes again"
