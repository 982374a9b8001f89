"""Stored messages and backlogs over REST (rules 11.5.3, 11.5.5)."""

from __future__ import annotations

import asyncio
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.broker.topic.publish.producer import PendingEntry
from magnetar.cli.admin import command
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.rawtransaction import RawTransaction
from tests.support.real_broker import TOPIC, RealBroker, message_over_rest, run_on_broker

NAME = TopicName.parse("persistent://public/default/t")
URL = f"{TOPIC}/t"


async def store(broker: RealBroker, *entries: tuple[bytes, int]) -> int:
    """Append whole entries with their numbers of messages; return their ledger."""
    log = broker.node.broker.service.system_topic(NAME).log
    connection = SimpleNamespace(dropped=lambda count: None)
    producer: Any = SimpleNamespace(open=False, msg_in=0, bytes_in=0, connection=connection)
    for entry, messages in entries:
        log.append(entry, messages, PendingEntry(producer, 0, 0))
    await broker.node.broker.store.journal.drain()
    return log.position(log.first).ledger


def single(payload: bytes, **metadata: Any) -> tuple[bytes, int]:
    return build_entry(EntryMetadata("p", 7, 1_700_000_000_120, **metadata), payload), 1


BATCH = join_batch([(SingleMessageMetadata(), b"one"), (SingleMessageMetadata(), b"two")])


def test_an_entry_is_shown_with_its_metadata_in_headers(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert (await message_over_rest(broker, "/examinemessage"))[0] == 404
        assert (await broker.ask("PUT", URL))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        assert await message_over_rest(broker, "/examinemessage") == (
            412, {}, b'{"reason":"Could not examine messages due to the total message is zero"}',
        )  # fmt: skip
        packed = compress(CompressionType.LZ4, b"hello" * 9)
        ledger = await store(
            broker,
            single(
                packed, compression=CompressionType.LZ4, uncompressed_size=45, properties=(("a", "1"),),
                partition_key="k", ordering_key=b"ok", event_time=1_000_000,
            ),
            (build_entry(EntryMetadata("p", 8, 1_700_000_000_000, num_messages_in_batch=2), BATCH), 2),
            single(b"secret", encryption_keys=(EncryptionKey("key", b"v"),), compression=CompressionType.LZ4),
        )  # fmt: skip
        first = {
            "message-id": f"{ledger}:0", "property": '{"a":"1"}', "publish-time": "2023-11-14T22:13:20.12Z",
            "event-time": "1970-01-01T00:16:40Z", "is-encrypted": "false", "producer-name": "p", "sequence-id": "7",
            "partition-key": "k", "compression": "LZ4", "uncompressed-size": "45", "base64-ordering-key": "b2s=",
            "txn-uncommitted": "false",
        }  # fmt: skip
        for path in (
            "/subscription/s/position/1",
            "/examinemessage?initialPosition=earliest",
            f"/ledger/{ledger}/entry/0",
        ):
            assert await message_over_rest(broker, path) == (200, first, b"hello" * 9)
        status, headers, body = await message_over_rest(broker, "/subscription/s/position/2")
        assert (status, body) == (200, BATCH)
        assert (headers["num-batch-message"], headers["batch-size"]) == ("2", str(len(BATCH) + 10))
        assert headers["publish-time"] == "2023-11-14T22:13:20Z"
        status, headers, body = await message_over_rest(broker, "/examinemessage")
        assert (status, headers["is-encrypted"], body) == (200, "true", b"secret")
        assert (await message_over_rest(broker, "/examinemessage?messagePosition=3"))[1]["message-id"] == f"{ledger}:0"
        assert (await message_over_rest(broker, "/examinemessage?initialPosition=earliest&messagePosition=9"))[1][
            "message-id"
        ] == f"{ledger}:2"

    run_on_broker(tmp_path, scenario)


@pytest.mark.parametrize("kept", [True, False])
def test_the_message_index_is_shown_where_the_broker_keeps_it(tmp_path: Path, kept: bool) -> None:
    """Of a batch that of its last message, as Apache Pulsar names it; whether or not clients are shown it."""

    async def scenario(broker: RealBroker) -> None:
        await store(
            broker, single(b"x"), (build_entry(EntryMetadata("p", 8, 1, num_messages_in_batch=2), BATCH), 2),
            single(b"y"),
        )  # fmt: skip
        shown = [
            (await message_over_rest(broker, f"/examinemessage?initialPosition=earliest&messagePosition={n}"))[1]
            for n in (1, 2, 3)
        ]
        found = [one.get("broker-entry-metadata-index") for one in shown]
        assert found == (["0", "2", "3"] if kept else [None] * 3)

    name = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor" if kept else ""
    run_on_broker(tmp_path, scenario, brokerEntryMetadataInterceptors=name)


def test_a_peek_makes_no_subscription(tmp_path: Path) -> None:
    """It shows what a new one at the beginning would get; Apache Pulsar makes that (docs/differences.md)."""

    async def scenario(broker: RealBroker) -> None:
        await store(broker, single(b"x"))
        status, _, body = await message_over_rest(broker, "/subscription/other/position/1")
        assert (status, body) == (200, b"x")
        assert await broker.ask("GET", f"{URL}/subscriptions") == (200, [])

    run_on_broker(tmp_path, scenario)


def test_messages_that_do_not_exist_are_404(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        ledger = await store(broker, single(b"x"))
        not_there: tuple[int, dict[str, str], bytes] = (404, {}, b'{"reason":"Message not found"}')
        assert await message_over_rest(broker, "/subscription/s/position/2") == not_there
        assert await message_over_rest(broker, "/examinemessage?messagePosition=2") == not_there
        assert (await message_over_rest(broker, "/subscription/s/position/0"))[0] == 400
        assert await message_over_rest(broker, "/subscription/other/position/2") == not_there
        for position in (f"{ledger}/entry/1", f"{ledger + 100}/entry/0", f"{ledger}/entry/-1"):
            assert await message_over_rest(broker, f"/ledger/{position}") == (
                404,
                {},
                b'{"reason":"Message id not found"}',
            )
        assert (await broker.ask("PUT", "/admin/v2/non-persistent/public/default/n"))[0] == 204
        status, said = await broker.ask("GET", "/admin/v2/non-persistent/public/default/n/examinemessage")
        assert (status, said) == (405, {"reason": "Examine messages on a non-persistent topic is not allowed"})

    run_on_broker(tmp_path, scenario)


def test_a_peek_by_the_command_leaves_out_markers_and_what_is_not_committed(tmp_path: Path) -> None:
    """What --show-server-marker and --transaction-isolation-level look at are headers of the broker."""

    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        await client.subscribe(NAME.fqn, "s", c.SubType.Shared)
        producer = await client.producer(NAME.fqn)
        for payload, end in ((b"committed", "commit"), (b"aborted", "abort"), (b"open", "")):
            txn = await RawTransaction.begin(client)
            await txn.add_partitions(NAME.fqn)
            await txn.publish(producer, payload)
            if end:
                await getattr(txn, end)()

        def peeked(*flags: str) -> list[str]:
            web = broker.node.broker.service.web_service_url
            asked = ["--admin-url", web, "topics", "peek-messages", NAME.fqn, "-s", "s", "-n", "9", *flags]
            with redirect_stdout(io.StringIO()) as out:
                assert command.run(asked) == 0
            return [entry.partition(":")[2] for entry in re.findall(r"Message ID: (\S+)", out.getvalue())]

        assert await asyncio.to_thread(peeked) == ["0"]
        assert await asyncio.to_thread(peeked, "-ssm") == ["0", "1"]
        assert await asyncio.to_thread(peeked, "-til", "READ_UNCOMMITTED") == ["0", "2", "4"]
        assert await asyncio.to_thread(peeked, "-ssm", "-til", "READ_UNCOMMITTED") == ["0", "1", "2", "3", "4"]
        await client.close()

    run_on_broker(tmp_path, scenario, transactionCoordinatorEnabled=True)


def test_a_backlog_is_counted_by_reading_it(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        path = f"{URL}/subscription/s/analyzeBacklog"
        assert (await broker.ask("POST", path))[1] == analyzed(0, 0)
        batch = build_entry(EntryMetadata("p", 8, 1, num_messages_in_batch=2), BATCH), 2
        ledger = await store(broker, single(b"0"), batch, single(b"2"), batch)
        client = await broker.client()
        consumer = await client.subscribe(NAME.fqn, "s", c.SubType.Shared)
        consumer.flow(10)
        got = [await consumer.receive() for _ in range(4)]
        await consumer.ack(got[2].message_id)
        await client.close()
        for body, entries, messages, first in (
            (None, 3, 5, 0), ("earliest", 3, 5, 0), ({"ledgerId": ledger, "entryId": 1}, 2, 4, 1),
            ({"ledgerId": -1, "entryId": -1}, 3, 5, 0),
        ):  # fmt: skip
            assert (await broker.ask("POST", path, body))[1] == {
                **analyzed(entries, messages), "firstMessageId": f"{ledger}:{first}", "lastMessageId": f"{ledger}:3",
            }  # fmt: skip
        assert (await broker.ask("POST", path, "latest"))[1] == analyzed(0, 0)
        assert (await message_over_rest(broker, "/subscription/s/position/3"))[1]["message-id"] == f"{ledger}:3"
        assert (await broker.ask("POST", path, 5))[0] == 400

    run_on_broker(tmp_path, scenario)


def test_counting_a_backlog_stops_at_the_limit(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL))[0] == 204
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "earliest"))[0] == 204
        await store(broker, *[single(b"x")] * 5)
        found = (await broker.ask("POST", f"{URL}/subscription/s/analyzeBacklog"))[1]
        assert (found["entries"], found["aborted"], found["lastMessageId"][-2:]) == (3, True, ":2")

    run_on_broker(tmp_path, scenario, subscriptionBacklogScanMaxEntries=3)


def analyzed(entries: int, messages: int) -> dict[str, object]:
    return {
        "entries": entries, "messages": messages, "filterRejectedEntries": 0, "filterAcceptedEntries": entries,
        "filterRescheduledEntries": 0, "filterRejectedMessages": 0, "filterAcceptedMessages": messages,
        "filterRescheduledMessages": 0, "aborted": False,
    }  # fmt: skip


def test_the_backlog_that_is_due(tmp_path: Path) -> None:
    """/metrics shows the backlog with and without delayed messages (rule 7.8)."""

    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        consumer = await client.subscribe(NAME.fqn, "s", c.SubType.Shared)
        producer = await client.producer(NAME.fqn)
        await producer.publish(b"now")
        later = build_entry(EntryMetadata("p", 1, 1, deliver_at_time=4_000_000_000_000), b"later")
        await producer.receipt(producer.send(b"", entry=later))
        metrics = str((await broker.ask("GET", "/metrics"))[1])
        seen = {
            line.partition("{")[0]: line.rpartition(" ")[2]
            for line in metrics.splitlines()
            if line.startswith("pulsar_subscription_back_log")
        }
        assert seen == {"pulsar_subscription_back_log": "2", "pulsar_subscription_back_log_no_delayed": "1"}
        assert consumer is not None
        await client.close()

    run_on_broker(tmp_path, scenario)


def test_ids_of_another_topic_show_nothing_of_it(tmp_path: Path) -> None:
    """Who may read one topic reads no other through an id in the request, as in CVE-2021-41571."""

    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", URL))[0] == 204
        other = f"{TOPIC}/other"
        assert (await broker.ask("PUT", f"{other}/subscription/s", "earliest"))[0] == 204
        ledger = await store(broker, single(b"hidden"))
        assert (await message_over_rest(broker, f"/ledger/{ledger}/entry/0"))[2] == b"hidden"
        position = {"ledgerId": ledger, "entryId": 0}
        for method, path, body in (
            ("GET", f"{other}/ledger/{ledger}/entry/0", None),
            ("POST", f"{other}/subscription/s/analyzeBacklog", position),
            ("POST", f"{other}/subscription/s/resetcursor", position),
            ("POST", f"{other}/subscription/s/expireMessages", position),
            ("GET", f"{other}/examinemessage?initialPosition=earliest", None),
            ("GET", f"{other}/subscription/s/position/1", None),
        ):
            answered = str(await broker.ask(method, path, body))
            assert "hidden" not in answered and "'messages': 1" not in answered, path
        assert (await broker.ask("GET", f"{other}/ledger/{ledger}/entry/0"))[0] == 404

    run_on_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("index", "excluded", "left"), [(0, True, (2,)), (1, False, (2,)), (0, False, ()), (-1, False, ())]
)
def test_a_reset_to_a_message_of_a_batch_leaves_what_is_before_it(
    tmp_path: Path, index: int, excluded: bool, left: tuple[int, ...]
) -> None:
    assert _after_reset(tmp_path, index, excluded=excluded) == (3, left)


@pytest.mark.parametrize("index", [1, -1])
def test_a_reset_after_the_last_of_a_batch_begins_with_the_next_entry(tmp_path: Path, index: int) -> None:
    assert _after_reset(tmp_path, index, excluded=True) == (2, ())


def _after_reset(tmp_path: Path, index: int, *, excluded: bool) -> tuple[int, tuple[int, ...]]:
    """Reset to a message of the second entry of four, a batch of two; return backlog and what is left of the batch."""
    found: list[tuple[int, tuple[int, ...]]] = []

    async def scenario(broker: RealBroker) -> None:
        batch = build_entry(EntryMetadata("p", 8, 1, num_messages_in_batch=2), BATCH), 2
        ledger = await store(broker, single(b"0"), batch, single(b"2"), single(b"3"))
        assert (await broker.ask("PUT", f"{URL}/subscription/s", "latest"))[0] == 204
        body = {"ledgerId": ledger, "entryId": 1, "batchIndex": index, "isExcluded": excluded}
        assert (await broker.ask("POST", f"{URL}/subscription/s/resetcursor", body))[0] == 204
        log = broker.node.broker.service.system_topic(NAME).log
        cursor = log.cursors["s"]
        found.append((cursor.backlog(), cursor.remaining_indexes(log.first + 1)))

    run_on_broker(tmp_path, scenario)
    return found[0]
