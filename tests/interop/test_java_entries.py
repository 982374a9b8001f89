"""What Java's client wrote is read by ours, without Java: from entries that `tests.interop.golden` has kept."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.servers.process import HOST

from magnetar import aio
from magnetar.protocol.generated import pulsar_pb2
from magnetar.testing import PulsarBroker
from tests.conformance.wire import MAGIC_BROKER_ENTRY, Wire, command, frame, parse_entry
from tests.interop import golden
from tests.interop.encodings import Encoding, Fields
from tests.interop.matrix import Written, differences
from tests.interop.python_jobs import PythonJobs

KEPT = golden.kept()
ENCODINGS = golden.golden_encodings()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths by the names that encodings use."""
    place = tmp_path_factory.mktemp("keys")
    paths = {name: place / f"{name}.pem" for name in KEPT[golden.KEYS]}
    for name, text in KEPT[golden.KEYS].items():
        paths[name].write_text(text)
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture(scope="module")
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker(settings={"maxMessageSize": 1_000_000}) as started:
        yield started


def stored(broker: PulsarBroker, topic: str, kept: Fields) -> list[Fields]:
    """Publish entries byte for byte as they are kept; returns their ids."""
    _, _, port = broker.service_url.rpartition(":")
    with Wire.open((HOST, int(port))) as wire:
        wire.connect()
        name = f"persistent://public/default/{topic}"
        wire.request("LOOKUP", topic=name)
        schema = {} if kept["schema"] is None else {"schema": _message(kept["schema"])}
        assert wire.request("PRODUCER", topic=name, producer_id=1, producer_name="raw", **schema).kind != "ERROR"
        ids: list[Fields] = []
        for number, text in enumerate(kept["entries"]):
            data = base64.b64decode(text)
            if data[:2] == MAGIC_BROKER_ENTRY.to_bytes(2, "big"):
                data = data[6 + int.from_bytes(data[2:6], "big") :]
            metadata = parse_entry(data).metadata
            count = metadata.num_messages_in_batch
            wire.write(
                frame(command("SEND", producer_id=1, sequence_id=number, num_messages=count,
                              is_chunk=metadata.num_chunks_from_msg > 1), data)
            )  # fmt: skip
            place = wire.receive("SEND_RECEIPT").get("message_id")
            batch = range(count) if metadata.HasField("num_messages_in_batch") else (-1,)
            at = {"ledger": place.ledgerId, "entry": place.entryId, "text": f"entry {number}"}
            if metadata.num_chunks_from_msg <= 1 or metadata.chunk_id == metadata.num_chunks_from_msg - 1:
                ids += [{**at, "batch_index": index} for index in batch]
        return ids


def _message(text: str) -> Any:
    return pulsar_pb2.Schema.FromString(base64.b64decode(text))


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda one: one.name)
def test_ours_reads_what_java_wrote(broker: PulsarBroker, keys: dict[str, str], encoding: Encoding) -> None:
    """Payload, value, key, properties, times and sequence ids of each message, in order."""
    topic = encoding.name.replace(" ", "-").replace(",", "")
    ids = stored(broker, topic, KEPT[encoding.name])
    jobs = PythonJobs("magnetar", with_dataclasses=len(topic) % 2 == 0)
    kind = encoding.read_as or encoding.schema
    options = {name: keys.get(value, value) for name, value in encoding.consumer.items()}

    async def read() -> list[Fields]:
        async with aio.Client(broker.service_url) as client:
            given = jobs.consumer({"consumer": options, "schema": None if kind is None else {"kind": kind}})
            consumer = await client.subscribe(topic, "s", **given)
            return [jobs.shown(await consumer.receive(5_000), kind) for _ in encoding.messages]

    found = asyncio.run(read())
    if encoding.producer.get("by_key"):  # each key's messages are together
        found.sort(key=lambda one: one["sequence_id"])
        ids = [one["id"] for one in found]
    assert differences(encoding, Written(topic, ids), found, golden.WRITER, official=False, raw=False) == []


@pytest.mark.parametrize(
    "encoding",
    [one for one in ENCODINGS if one.schema and one.same_payload and not one.producer],
    ids=lambda one: one.name,
)
def test_ours_writes_the_bytes_of_java(encoding: Encoding) -> None:
    """Equal values have equal payloads in both clients."""
    for declared in (False, True):
        values = PythonJobs("magnetar", with_dataclasses=declared).values
        schema = values.schema(encoding.schema, producing=True)
        written = [parse_entry(base64.b64decode(one)).payload for one in KEPT[encoding.name]["entries"]]
        assert [schema.encode(values.value(encoding.schema, one)) for one in encoding.messages] == written


def test_every_encoding_is_kept() -> None:
    """What is added to the matrix is recorded: make interop ARGS=--record."""
    assert set(KEPT) == {one.name for one in ENCODINGS} | {golden.KEYS}
    assert Path(golden.PLACE).stat().st_size < 200_000
