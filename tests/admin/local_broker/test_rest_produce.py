"""Publishing over REST: answers of Apache Pulsar 4.0.8, and the rules of every producer (decision 035)."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from magnetar.admin.routes.produce import MESSAGES_MAX
from magnetar.model.errors import InvalidValueError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import payload_of
from tests.support.loop_turns import turns_of_others
from tests.support.real_broker import RealBroker, message_over_rest, run_on_broker

P = "/admin/v2/persistent/public/default/"
T = "/topics/persistent/public/default/"
RECORD = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"], "default": None}],
}


def schema(kind: str, definition: object = "") -> str:
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return json.dumps({"name": "s", "type": kind, "schema": base64.b64encode(text.encode()).decode(), "properties": {}})


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"producerName": "w", "messages": list(messages), **more}


async def payloads(broker: RealBroker, topic: str, count: int) -> list[bytes]:
    client = await broker.client()
    consumer = await client.subscribe(
        f"persistent://public/default/{topic}", "look", initial_position=c.InitialPosition.Earliest, durable=False,
        start_message_id=c.MessageIdData(0, 0),
    )  # fmt: skip
    consumer.flow(100)
    found = [payload_of((await consumer.receive()).entry) for _ in range(count)]
    await client.close()
    return found


def test_messages_are_stored_as_pulsar_stores_them(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        one = {"key": "k", "payload": "hello", "eventTime": "12345", "sequenceId": 1, "properties": {"a": "b"}}
        status, found = await broker.ask("POST", T + "t", body(one, {"payload": "ö"}))
        assert status == 200
        first, second = found["messagePublishResults"]
        assert list(first) == ["messageId", "errorCode", "schemaVersion"]
        ledger = first["messageId"].split(":")[0]
        assert first == {"messageId": f"{ledger}:0:-1", "errorCode": 0, "schemaVersion": 0}
        assert (second["messageId"], found["schemaVersion"]) == (f"{ledger}:1:-1", 0)
        _, headers, data = await message_over_rest(broker, "/examinemessage?initialPosition=earliest&messagePosition=1")
        assert data == b"hello"
        assert (headers["partition-key"], headers["producer-name"], headers["sequence-id"]) == ("k", "w", "1")
        assert (headers["property"], headers["event-time"]) == ('{"a":"b"}', "1970-01-01T00:00:12.345Z")
        assert await payloads(broker, "t", 2) == [b"hello", "ö".encode()]
        latest = (await broker.ask("GET", "/admin/v2/schemas/public/default/t/schema"))[1]
        assert latest["type"] == "STRING"
        assert await broker.ask("POST", T + "t", body()) == (200, {"messagePublishResults": [], "schemaVersion": 0})
        assert (await broker.stats("t"))["publishers"] == []

    run_on_broker(tmp_path, scenario)


def test_partitions_are_taken_in_turn_or_as_asked(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "pt/partitions", 3)
        found = (await broker.ask("POST", T + "pt", body(*[{"payload": str(i), "key": "k"} for i in range(5)])))[1]
        places = [one["messageId"].rpartition(":")[2] for one in found["messagePublishResults"]]
        assert places == ["0", "1", "2", "0", "1"]
        found = (await broker.ask("POST", T + "pt/partitions/2", body({"payload": "x"})))[1]
        assert found["messagePublishResults"][0]["messageId"].endswith(":2")
        for path in ("pt/partitions/9", "pt/partitions/-1"):
            status, found = await broker.ask("POST", T + path, body({"payload": "x"}))
            assert status == 200
            assert found["messagePublishResults"] == [
                {"errorMsg": "Topic not owned by current broker.", "messageId": path.rpartition("/")[2], "errorCode": 2,
                 "schemaVersion": 0}
            ]  # fmt: skip
        status, found = await broker.ask("POST", T + "pt-partition-1", body({"payload": "x"}))
        assert found["messagePublishResults"][0]["messageId"].endswith(":1")
        refused = await broker.ask("POST", T + "pt-partition-1/partitions/1", body({"payload": "x"}))
        assert refused == (400, {"reason": "Topic name can't contain '-partition-' suffix."})
        await broker.ask("PUT", "/admin/v2/non-persistent/public/default/np")
        found = (await broker.ask("POST", T.replace("/p", "/non-p", 1) + "np", body({"payload": "x"})))[1]
        assert found["messagePublishResults"][0]["errorCode"] == 0

    run_on_broker(tmp_path, scenario)


ENCODED = [
    ("INT8", "5", "05"), ("INT16", "-2", "fffe"), ("INT32", "5", "00000005"), ("INT64", "7", "0000000000000007"),
    ("STRING", "ö", "c3b6"), ("FLOAT", "1.5", "3fc00000"), ("FLOAT", "NaN", "7fc00000"),
    ("DOUBLE", "-2.5e3", "c0a3880000000000"), ("BOOLEAN", "True", "01"), ("BOOLEAN", "1", "00"),
    ("BYTES", "aGk=", "61476b3d"), ("NONE", "x", "78"), ("DATE", "Jan 2, 2024", "0000018cc7785000"),
    ("DATE", "2024-01-02", "0000018cc7785000"),
    ("TIME", "3600000", "000000000036ee80"), ("TIMESTAMP", "1700000000123", "0000018bcfe5687b"),
    ("INSTANT", "2024-01-02T03:04:05.006Z", "0000000065937d25005b8d80"),
    ("LOCAL_DATE", "2024-01-02", "0000000000004d0c"), ("LOCAL_TIME", "03:04:05.006", "00000a0b9da8bf80"),
    ("LOCAL_DATE_TIME", "2024-01-02T03:04:05.006", "0000000000004d0c00000a0b9da8bf80"),
    ("AVRO", '{"a":1,"b":{"string":"x"}}', "02020278"), ("AVRO", '{"a":1,"b":null}', "0200"),
    ("JSON", '{ "a" : 2 }', "7b2261223a327d"), ("JSON", '{"zz":1.0e2}', "7b227a7a223a3130302e307d"),
]  # fmt: skip
"""What Apache Pulsar 4.0.8 stored, in hexadecimal; the second way to write a DATE is ours."""


def test_payloads_are_encoded_by_their_schema(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        for number, (kind, text, stored) in enumerate(ENCODED):
            await broker.ask("PUT", f"{P}e{number}")
            given = schema(kind, RECORD if kind in ("AVRO", "JSON") else "")
            status, found = await broker.ask("POST", f"{T}e{number}", body({"payload": text}, valueSchema=given))
            assert status == 200, found
            assert (kind, text, (await payloads(broker, f"e{number}", 1))[0].hex()) == (kind, text, stored)

    run_on_broker(tmp_path, scenario)


def test_pairs_of_key_and_value(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        given = body({"key": "7", "payload": '{"a":1,"b":null}'}, keySchema=schema("INT32"),
                     valueSchema=schema("JSON", RECORD))  # fmt: skip
        assert (await broker.ask("POST", T + "t", given))[0] == 200
        _, headers, data = await message_over_rest(broker, "/examinemessage?initialPosition=earliest&messagePosition=1")
        assert (headers["partition-key"], headers["partition-key-b64-encoded"]) == ("AAAABw==", "true")
        assert data == b'{"a":1,"b":null}'

    run_on_broker(tmp_path, scenario)


WRONG: list[tuple[Any, int, str]] = [
    (None, 400, "messages"),
    ([], 400, "messages"),
    ({}, 400, "messages"),
    (body({"payload": None}), 400, "message 0"),
    (body({"payload": "x"}, {"key": "z"}), 400, "message 1, and so none of them"),
    (body({"payload": "x", "eventTime": "soon"}), 400, "eventTime"),
    (body({"payload": "5"}, valueSchema="{broken"), 422, "Fail to add or retrieve schema."),
    (body({"payload": "5"}, valueSchema=schema("BOGUS")), 422, "Fail to add or retrieve schema."),
    (body({"payload": "5"}, valueSchema=schema("PROTOBUF", RECORD)), 422, "PROTOBUF"),
    (body({"payload": "abc"}, valueSchema=schema("INT32")), 400, "INT32"),
    (body({"payload": '{"b":null}'}, valueSchema=schema("AVRO", RECORD)), 400, "$.a is missing"),
    (body({"payload": "junk"}, valueSchema=schema("AVRO", RECORD)), 400, "message 0"),
    (body({"payload": "1e300"}, valueSchema=schema("AVRO", '"float"')), 400, "1e+300 is no float"),
    (body({"payload": "x"}, {"payload": "x", "deliverAfterMs": 86_400_000_000_000_000}), 400, "message 1"),
    (body({"payload": "x", "deliverAfterMs": 2**63 - 1}), 400, "deliverAfterMs"),
    (body({"payload": "x"}, schemaVersion=7), 404, "no schema of version 7"),
]


def test_nothing_is_stored_of_a_request_that_is_wrong(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        for given, status, reason in WRONG:
            refused = await broker.ask("POST", T + "t", given)
            assert (refused[0], reason in refused[1]["reason"]) == (status, True), (given, refused)
        assert (await broker.stats("t"))["msgInCounter"] == 0
        for path in (T + "none", "/topics/persistent/public/none/t", "/topics/persistent/none/none/t"):
            assert (await broker.ask("POST", path, body({"payload": "x"})))[0] == 404
        assert (await broker.ask("POST", T + "t", body({"payload": "x"})))[0] == 200
        refused = await broker.ask("POST", T + "t", body({"payload": "5"}, valueSchema=schema("INT32")))
        assert (refused[0], "Fail to publish message" in refused[1]["reason"]) == (409, True)
        assert (await broker.ask("POST", T + "t", body({"payload": "y"}, schemaVersion=0)))[1]["schemaVersion"] == 0
        assert (await broker.stats("t"))["msgInCounter"] == 2

    run_on_broker(tmp_path, scenario)


@pytest.mark.parametrize("name", ["", "w"])
def test_the_rules_of_every_producer_hold(tmp_path: Path, name: str) -> None:
    async def scenario(broker: RealBroker) -> None:
        given = {**body({"payload": "x"}), "producerName": name}
        await broker.ask("PUT", P + "t")
        # many at once, of one name or of none: each is stored once
        answers = await asyncio.gather(*(broker.ask("POST", T + "t", given) for _ in range(8)))
        assert [status for status, _ in answers] == [200] * 8
        places = {answer["messagePublishResults"][0]["messageId"] for _, answer in answers}
        assert len(places) == 8
        too_large = await broker.ask("POST", T + "t", body({"payload": "x" * 2000}, {"payload": "y"}))
        assert [one["errorCode"] for one in too_large[1]["messagePublishResults"]] == [2, 0]
        await broker.ask("POST", P + "t/maxProducers", 1)
        await (await broker.client()).producer("persistent://public/default/t")
        assert (await broker.ask("POST", T + "t", given))[0] in (409, 500, 503)
        await broker.ask("POST", P + "t/terminate")
        assert (await broker.ask("POST", T + "t", given))[0] == 503

    run_on_broker(tmp_path, scenario, maxMessageSize=1000)


def test_a_request_of_many_messages_shares_the_loop(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        status, found = await broker.ask("POST", T + "t", body(*[{"payload": ""}] * (MESSAGES_MAX + 1)))
        assert (status, found["reason"]) == (413, "10001 messages in one request; 10000 are the most: send several")
        assert (await broker.stats("t"))["msgInCounter"] == 0
        sent: list[int] = []

        def refused(*_: object) -> InvalidValueError:
            sent.append(turns.count)
            return InvalidValueError("no")

        with turns_of_others() as turns, patch("magnetar.admin.routes.produce._send", refused):
            status, found = await broker.ask("POST", T + "t", body(*[{"payload": ""}] * 1000))
        assert (status, len(sent)) == (200, 1000)
        assert len(set(sent)) >= 1000 // 50

    run_on_broker(tmp_path, scenario)
