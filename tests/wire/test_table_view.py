"""Table views and readers of several topics: what they show, and that they keep up (rules 6.9.5, 6.9.6)."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request

import pytest
from tools.servers.process import Server

from magnetar import aio
from magnetar.client.aio import reader_client
from magnetar.model.errors import InvalidValueError


def test_the_last_value_of_each_key(server: Server, topic: str) -> None:
    """Values, null and empty ones that take a key out, messages without a key, listeners and their errors."""

    async def all_of_it() -> None:
        async with aio.Client(server.broker_url) as client:
            producer = await client.create_producer(topic, batching_enabled=True)
            for key, value in (("a", b"1"), ("b", b"1"), ("c", b"1"), (None, b"no key"), ("b", b""), ("a", b"2")):
                await producer.send(value, partition_key=key)
            async with await client.create_table_view(topic) as view:
                assert view.snapshot() == {"a": b"2", "c": b"1"} == dict(view.items())
                assert ("a" in view, "b" in view, len(view), view.get("b")) == (True, False, 2, None)
                with pytest.raises(KeyError):
                    view["b"]
                heard: list[tuple[str, object]] = []

                def fails(key: str, value: object) -> None:
                    raise OSError(key)

                async def awaited(key: str, value: object) -> None: ...

                view.listen(fails)
                view.for_each_and_listen(lambda key, value: heard.append((key, value)))
                with pytest.raises(InvalidValueError, match="plain function"):
                    view.for_each(awaited)
                with pytest.raises(OSError, match="a"):
                    view.for_each(fails)
                await producer.send(None, partition_key="a")
                await producer.send(b"3", partition_key="d")
                await view.refresh()
                assert view.snapshot() == {"c": b"1", "d": b"3"}
                assert heard == [("a", b"2"), ("c", b"1"), ("a", b""), ("d", b"3")]
            with pytest.raises(aio.AlreadyClosedError):
                view.get("c")
            with pytest.raises(aio.AlreadyClosedError):
                await view.refresh()
            await view.close()

    asyncio.run(all_of_it())


def asked(server: Server, method: str, path: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    url, headers = f"{server.http_url}/admin/v2/persistent/public/default/{path}", {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=10) as answer:
        return bytes(answer.read())


def wait_for_compaction(server: Server, topic: str) -> None:
    while b"SUCCESS" not in asked(server, "GET", f"{topic}/compaction"):
        time.sleep(0.02)


def test_a_compacted_topic_of_which_the_last_message_is_gone(server: Server, topic: str) -> None:
    """The view opens where compaction has taken the last message out: the broker answers with the last that is left."""

    async def all_of_it() -> dict[str, object]:
        async with aio.Client(server.broker_url) as client:
            async with await client.create_producer(topic) as producer:
                for key, value in (("a", b"1"), ("b", b"1"), ("a", b"2"), ("b", None)):
                    await producer.send(value, partition_key=key)
            await asyncio.to_thread(asked, server, "PUT", f"{topic}/compaction")
            async with asyncio.timeout(20):
                await asyncio.to_thread(wait_for_compaction, server, topic)
                async with await client.create_table_view(topic) as view:
                    await view.refresh()
                    return view.snapshot()

    assert asyncio.run(all_of_it()) == {"a": b"2"}


def test_partitions_that_are_added(server: Server, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views and readers of a topic with partitions take up new ones from their beginning (rule 6.8.4)."""
    monkeypatch.setattr(reader_client, "GROWTH_PERIOD", 0.05)
    asked(server, "PUT", f"{topic}/partitions", 1)

    async def all_of_it() -> None:
        async with aio.Client(server.broker_url) as client:
            view = await client.create_table_view(topic)
            full = asyncio.Event()
            view.listen(lambda *_: full.set() if len(view) == 9 else None)
            latest = await client.create_reader(topic, aio.MessageId.latest)
            await asyncio.to_thread(asked, server, "POST", f"{topic}/partitions", 3)
            async with await client.create_producer(topic) as producer:
                for number in range(9):
                    await producer.send(b"%d" % number, partition_key=f"k{number}")
            async with asyncio.timeout(20):
                await full.wait()
                assert {(await latest.read_next()).partition_key() for _ in range(9)} == set(view)

    asyncio.run(all_of_it())


def test_a_reader_of_several_topics(server: Server, topic: str) -> None:
    """All of them are read, from one end only (rule 6.9.5)."""

    async def all_of_it() -> None:
        async with aio.Client(server.broker_url) as client:
            ids = []
            for name in ("one", "two"):
                async with await client.create_producer(f"{topic}-{name}") as producer:
                    ids.append(await producer.send(name.encode()))
            both = [f"{topic}-one", f"{topic}-two"]
            reader = await client.create_reader(both, aio.MessageId.earliest)
            assert {(await reader.read_next(10_000)).data() for _ in both} == {b"one", b"two"}
            assert not await reader.has_message_available()
            assert len(await reader.get_last_message_ids()) == 2
            with pytest.raises(InvalidValueError, match="several topics"):
                await client.create_reader(both, ids[0])
            with pytest.raises(InvalidValueError, match="at least one of them"):
                await client.create_reader([], aio.MessageId.earliest)
            async with await client.create_reader(both[0], aio.MessageId.earliest) as one:
                assert (await one.get_last_message_id()).entry_id() == ids[0].entry_id()

    asyncio.run(all_of_it())
