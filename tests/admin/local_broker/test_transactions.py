"""Transactions over REST, on a real broker (rules 9.17, 9.18)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magnetar.protocol import commands as c
from magnetar.testing.rawtransaction import RawTransaction
from tests.admin.conftest import World
from tests.support.conversations import batch
from tests.support.real_broker import RealBroker, real_broker

T = "persistent://public/default/t"
V3 = "/admin/v3/transactions"
HERE = "public/default/t"


async def ok(broker: RealBroker, path: str) -> object:
    status, found = await broker.ask("GET", f"{V3}/{path}")
    assert status == 200, found
    return found


async def counts(broker: RealBroker) -> tuple[int, int, int]:
    stats = await broker.stats("t")
    return stats["ongoingTxnCount"], stats["committedTxnCount"], stats["abortedTxnCount"]


async def scenario(broker: RealBroker) -> None:
    assert (await ok(broker, "coordinators")) == [{"id": 0, "brokerServiceUrl": broker.node.broker.service.service_url}]
    client = await broker.client()
    producer = await client.producer(T)
    consumer = await client.subscribe(T, "s", c.SubType.Shared)
    consumer.flow(10)
    plain = await producer.publish(b"p")
    await consumer.receive()
    assert (await broker.ask("GET", f"{V3}/pendingAckStats/{HERE}/s"))[1]["state"] == "None"
    assert await ok(broker, f"positionStatsInPendingAck/{HERE}/s/{plain.ledger}/{plain.entry}") == {
        "state": "PendingAckNotReady"
    }
    txn = await RawTransaction.begin(client)
    sent = await txn.publish(producer, b"x")
    await txn.ack(consumer, plain)
    found = await ok(broker, "transactionMetadata/0/0")
    assert isinstance(found, dict)
    assert abs(found.pop("openTimestamp") - broker.node.broker.service.clock.now_ms()) < 60_000
    assert found == {
        "txnId": "(0,0)",
        "status": "OPEN",
        "timeoutAt": 60_000,
        "producedPartitions": {T: {"startPosition": f"{sent.ledger}:{sent.entry}", "aborted": False}},
        "ackedPartitions": {T: {"s": {}}},
    }
    assert list((await broker.ask("GET", f"{V3}/slowTransactions/0"))[1]) == ["(0,0)"]
    assert list((await broker.ask("GET", f"{V3}/slowTransactions/59999"))[1]) == ["(0,0)"], (
        "those with a longer timeout"
    )
    assert await ok(broker, "slowTransactions/60000") == {}
    stats = (await broker.ask("GET", f"{V3}/coordinatorStats"))[1]["0"]
    assert (stats["state"], stats["leastSigBits"], stats["ongoingTxnSize"], stats["lowWaterMark"]) == (
        "Ready",
        0,
        1,
        -1,
    )
    buffer = (await broker.ask("GET", f"{V3}/transactionBufferStats/{HERE}?lowWaterMarks=true"))[1]
    assert (buffer["maxReadPosition"], buffer["ongoingTxnSize"], buffer["lowWaterMarks"]) == (
        f"{plain.ledger}:{plain.entry}", 1, {"0": -1},
    )  # fmt: skip
    assert await ok(broker, f"transactionInBufferStats/{HERE}/0/0") == {
        "startPosition": f"{sent.ledger}:{sent.entry}", "aborted": False,
    }  # fmt: skip
    assert await ok(broker, f"transactionInPendingAckStats/{HERE}/s/0/0") == {}
    assert (await broker.ask("GET", f"{V3}/pendingAckStats/{HERE}/s"))[1]["ongoingTxnSize"] == 1
    assert await ok(broker, f"positionStatsInPendingAck/{HERE}/s/{plain.ledger}/{plain.entry}") == {
        "state": "PendingAck"
    }
    assert await counts(broker) == (1, 0, 0)
    size = (await broker.stats("t"))["bytesInCounter"]
    assert await broker.ask("POST", f"{V3}/abortTransaction/0/0") == (204, "")
    assert await broker.ask("POST", f"{V3}/abortTransaction/0/0") == (
        404, {"reason": "The transaction with this txdID `(0,0)`not found "},
    )  # fmt: skip
    assert (await broker.ask("GET", f"{V3}/transactionMetadata/0/0"))[0] == 404
    assert (await consumer.receive()).message_id == plain
    other = await RawTransaction.begin(client)
    await other.publish(producer, b"y")
    await other.commit()
    assert await counts(broker) == (0, 1, 1)
    after = await broker.stats("t")
    assert (after["msgInCounter"], after["bytesInCounter"]) == (3, size + size // 2), "markers are no messages"
    for path in ("coordinatorStats?coordinatorId=7", "transactionMetadata/7/0", f"pendingAckStats/{HERE}/nobody",
                 "transactionBufferStats/public/default/nothing"):  # fmt: skip
        assert (await broker.ask("GET", f"{V3}/{path}"))[0] == 404


async def cumulative(broker: RealBroker) -> None:
    """A cumulative acknowledgement is shown with the last message that it takes of a batch."""
    client = await broker.client()
    producer = await client.producer(T)
    consumer = await client.subscribe(T, "s", c.SubType.Exclusive)
    first = await batch(producer, 4)
    second = await producer.publish(b"one")
    txn = await RawTransaction.begin(client)
    shown = f"transactionInPendingAckStats/{HERE}/s/{txn.id.most}/{txn.id.least}"
    part = first._replace(ack_set=(0b1000,), batch_size=4)
    for message_id, of_batch in ((part, ":2"), (first._replace(ack_set=(0,), batch_size=4), ""), (second, "")):
        await txn.ack(consumer, message_id, cumulative=True)
        text = f"{message_id.ledger}:{message_id.entry}{of_batch}"
        assert await ok(broker, shown) == {"cumulativeAckPosition": text}


def test_a_cumulative_acknowledgement_is_shown_with_its_place_in_a_batch(tmp_path: Path) -> None:
    async def run() -> None:
        async with real_broker(tmp_path, transactionCoordinatorEnabled=True) as broker:
            await cumulative(broker)

    asyncio.run(run())


def test_open_and_ended_transactions_are_shown(tmp_path: Path) -> None:
    async def run() -> None:
        async with real_broker(tmp_path, transactionCoordinatorEnabled=True) as broker:
            await scenario(broker)

    asyncio.run(run())


def test_a_broker_without_transactions_answers_503(shared_world: World) -> None:
    answer = shared_world.rest.get(f"{V3}/coordinators")
    assert answer.status_code == 503
    assert answer.json() == {"reason": "This Broker is not configured with transactionCoordinatorEnabled=true."}
