"""The first who uses something waits for it, and nobody else does: after the start, nothing is imported on the loop.

Every door of an installed broker is opened once; what needs modules that were not there has them imported in a thread
(:mod:`magnetar.admin.later_modules`) or brought at the start. What is left on the loop is listed here.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tools.servers import magnetar

from magnetar.protocol.compression import CompressionType
from magnetar.protocol.frames import with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.hostile.raw import HOST, TOPIC, Raw, command, send_frame
from tests.hostile.raw_websocket import CONSUMER, PRODUCER, READER, RawWebSocket
from tests.hostile.victim import Target
from tests.support.certificates import Authority
from tests.support.websocket_frames import TEXT, ws_frame

ON_THE_LOOP = {"re2", "re2._re2", "cramjam", "cramjam.cramjam", "google.protobuf.descriptor_pb2"}
"""Single libraries of 2 to 7 ms, and of megabytes that most brokers do without."""
_BASE = "/admin/v2/persistent/public/default"
_RECORD = '{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]}'

Door = Callable[[Target], None]


def messages(target: Target) -> None:
    with Raw(target.broker_port) as raw:
        raw.publish(raw.producer(TOPIC + "a"), 5)
        raw.producer("non-persistent://public/default/n")
        for kind in range(4):
            consumer = raw.consumer(TOPIC + "a", f"s{kind}", kind, initialPosition=1)
            raw.say(command("FLOW", consumer_id=consumer, messagePermits=10))
            one = raw.until(pb.BaseCommand.MESSAGE).message.message_id
            raw.say(command("ACK", consumer_id=consumer, ack_type=0, message_id=[one]))
            raw.say(command("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=consumer))
            raw.ask("SEEK", consumer_id=consumer, message_publish_time=1)


def entries(target: Target) -> None:
    """Chunks, delays and every compression, published, received and shown."""
    with Raw(target.broker_port) as raw:
        producer = raw.producer(TOPIC + "e")
        consumer = raw.consumer(TOPIC + "e", "s", initialPosition=1)
        raw.say(command("FLOW", consumer_id=consumer, messagePermits=100))
        special: list[dict[str, Any]] = [
            {"compression": kind, "uncompressed_size": 10} for kind in map(int, CompressionType)
        ]
        special += [{"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 20, "chunk_id": n} for n in (0, 1)]
        special.append({"deliver_at_time": int(time.time() * 1000) + 100})
        for number, fields in enumerate(special):
            metadata = pb.MessageMetadata(producer_name="p", sequence_id=number, publish_time=1, **fields)
            body = metadata.SerializeToString()
            entry = with_checksum(struct.pack(">I", len(body)) + body + b"0123456789")
            raw.say(send_frame(producer, number, entry))
            raw.until(pb.BaseCommand.SEND_RECEIPT)
        time.sleep(0.2)
    for number in range(1, len(special) + 1):
        target.http("GET", f"{_BASE}/e/subscription/s/position/{number}", None, {})
        target.http("GET", f"{_BASE}/e/examinemessage?messagePosition={number}", None, {})


def schemas(target: Target) -> None:
    for kind in pb.Schema.Type.values():
        data = b"\0\0\0\0\0\0\0\0" if kind == pb.Schema.KeyValue else _RECORD.encode()
        for grown in (data, data.replace(b'"b"', b'"c"')):
            with Raw(target.broker_port) as raw:
                raw.ask(
                    "PRODUCER", topic=f"{TOPIC}schema-{kind}", producer_id=1,
                    schema={"name": "s", "schema_data": grown, "type": kind},
                )  # fmt: skip
    target.rest("POST", "/admin/v2/schemas/public/default/posted/schema", {"type": "AVRO", "schema": _RECORD})
    target.rest("GET", "/admin/v2/schemas/public/default/posted/schema")


def topics(target: Target) -> None:
    with Raw(target.broker_port) as raw:
        raw.ask("WATCH_TOPIC_LIST", namespace="public/default", topics_pattern=f"{TOPIC}a.*", watcher_id=1)
        raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default", topics_pattern=f"{TOPIC}(a|b).*")
        raw.ask("LOOKUP", topic=TOPIC + "a")
        raw.ask("PARTITIONED_METADATA", topic=TOPIC + "a")
        raw.consumer(TOPIC + "a", "compacted", 0, read_compacted=True, durable=False)
    target.rest("PUT", f"{_BASE}/p/partitions", 2)


def transactions(target: Target) -> None:
    with Raw(target.broker_port) as raw:
        raw.ask("TC_CLIENT_CONNECT_REQUEST", tc_id=0)
        begun = raw.ask("NEW_TXN", tc_id=0, txn_ttl_seconds=30_000).newTxnResponse
        ids: dict[str, Any] = {"txnid_least_bits": begun.txnid_least_bits, "txnid_most_bits": begun.txnid_most_bits}
        raw.ask("ADD_PARTITION_TO_TXN", partitions=[TOPIC + "a"], **ids)
        producer = raw.producer(TOPIC + "a")
        body = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=1, **ids).SerializeToString()
        raw.say(send_frame(producer, 1, with_checksum(struct.pack(">I", len(body)) + body + b"x"), **ids))
        raw.until(pb.BaseCommand.SEND_RECEIPT)
        raw.ask("END_TXN", txn_action=pb.COMMIT, **ids)
    target.rest("GET", "/admin/v3/transactions/coordinatorStats")


def every_route(target: Target) -> None:
    _, described = target.rest("GET", "/openapi.json")
    for path, operations in described["paths"].items():
        for method in operations:
            filled = path.replace("{tenant}", "public").replace("{namespace}", "default").replace("{topic}", "a")
            filled = re.sub(r"\{[^}]*\}", "1", filled)
            if "shutdown" not in path:
                target.rest(method.upper(), quote(filled), 1 if method in ("post", "put") else None)
    for path in ("/metrics", "/docs", "/no/such/path", "/admin/v2/functions/public/default"):
        target.http("GET", path, None, {"accept-encoding": "gzip"})
    target.http("PATCH", "/admin/v2/clusters", None, {})


def rest_messages(target: Target) -> None:
    schema = '{"name":"","schema":"","type":"STRING","properties":{}}'
    body = {"producerName": "p", "valueSchema": schema, "messages": [{"payload": "m"}] * 100}
    assert target.rest("PUT", "/admin/v2/persistent/public/default/a")[0] in (204, 409), "there by now"
    status, answer = target.rest("POST", "/topics/persistent/public/default/a", body)
    assert status == 200, answer


def websockets(target: Target) -> None:
    with RawWebSocket(target.http_port, PRODUCER + "a") as one:
        one.say(ws_frame(TEXT, b'{"payload":"eA=="}'))
        assert one.hear()["result"] == "ok"
    for path in (
        CONSUMER + "a/w?subscriptionType=Shared&deadLetterTopic=d&maxRedeliverCount=1",
        READER + "a?messageId=earliest",
        "/ws/v3/consumer/s?topicsPattern=persistent://public/default/a.*",
        "/ws/v3/consumer/m?topics=a,p",
    ):
        with RawWebSocket(target.http_port, path) as one:
            one.say(ws_frame(TEXT, b'{"type":"isEndOfTopic"}'))


def encrypted(target: Target) -> None:
    context = ssl.create_default_context(cafile=target.authority)
    for port, said in (
        (target.tls_port, command("CONNECT", client_version="c", protocol_version=21)),
        (target.https_port, b"GET /admin/v2/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ):
        plain = socket.create_connection((HOST, port), timeout=20)
        with context.wrap_socket(plain, server_hostname=HOST) as one:
            one.sendall(said)
            assert one.recv(100)


def proxied(target: Target) -> None:
    for port in (target.broker_port, target.http_port):
        with socket.create_connection((HOST, port), timeout=20) as one:
            one.sendall(b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n")
            one.settimeout(0.2)
            try:
                one.recv(100)
            except OSError:
                pass


def upkeep(target: Target) -> None:
    """Compaction, expiry, trimming, offloading, deletion."""
    for method, path in (
        ("PUT", f"{_BASE}/a/compaction"),
        ("GET", f"{_BASE}/a/compaction"),
        ("POST", f"{_BASE}/a/subscription/s1/expireMessages/1"),
        ("POST", f"{_BASE}/a/trim"),
        ("POST", f"{_BASE}/a/subscription/s1/analyzeBacklog"),
        ("GET", f"{_BASE}/a/internalStats"),
        ("GET", "/admin/v2/brokers/health"),
        ("POST", f"{_BASE}/p/terminate/partitions"),
        ("DELETE", f"{_BASE}/e?force=true"),
    ):
        target.rest(method, path)
    time.sleep(0.3)


DOORS: tuple[Door, ...] = (
    messages, entries, schemas, topics, transactions, rest_messages, websockets, encrypted, proxied, every_route,
    upkeep,
)  # fmt: skip


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Path]]:
    place = tmp_path_factory.mktemp("first")
    authority, log = Authority(place / "tls"), place / "imports"
    shown = authority.issue("broker")
    settings = {
        "transactionCoordinatorEnabled": "true",
        "acknowledgmentAtBatchIndexLevelEnabled": "true",
        "brokerServicePortTls": "0",
        "webServicePortTls": "0",
        "tlsCertificateFilePath": shown.certificate_file,
        "tlsKeyFilePath": shown.key_file,
    }
    command = f"{sys.executable} -m tests.app.watched_imports {log} standalone"
    server = magnetar.start(
        place, settings=settings, command=command, environment={"PYTHONPATH": f"{magnetar.ROOT}:{magnetar.ROOT}/src"}
    )
    try:
        target = Target(server.broker_port, server.http_port, server.tls_port, server.https_port, authority.file)
        assert target.rest("GET", "/admin/v2/brokers/ready")[0] == 200
        assert log.read_text()
        yield target, log
    finally:
        server.stop()


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_nothing_is_imported_on_the_loop(opened: tuple[Target, Path], door: Door) -> None:
    target, log = opened
    before = log.read_text()
    door(target)
    found = log.read_text().removeprefix(before).split()
    assert [name for name in found if name not in ON_THE_LOOP] == []


def test_the_table_of_percent_decoding_is_there_before_the_first_path() -> None:
    program = "import urllib.parse, magnetar.admin.http.parameters; print(urllib.parse._hextobyte is not None)"
    paths = {"PYTHONPATH": f"{magnetar.ROOT}/src"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True, env=paths)
    assert done.stdout == "True\n"
