"""What the official client writes in chunks and encrypted, in every compression, read as a task does it."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.bulk.positions import last_position
from magnetar.client.lookup import Lookup
from magnetar.client.producer import Producer
from magnetar.client.read_position import START
from magnetar.columnar.single_entries.encryption import UndecryptableError
from magnetar.protocol.compression import CompressionType
from magnetar.spark.options.encryption_keys import sealing
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import source_options
from magnetar.spark.source.planning.planner import Range
from magnetar.spark.source.reading.read_task import read_task
from tests.support.batch_writer import BatchWriter
from tests.support.encrypted_entries import pair
from tests.support.live_broker import LiveBroker

pulsar = pytest.importorskip("pulsar")
pytestmark = pytest.mark.spark
KINDS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")


def everything(url: str, topic: str, **options: str) -> list[bytes]:
    with Lookup(url, timeout=10) as lookup:
        end = last_position(lookup, topic)
    checked = source_options({"service.url": url, "topic": topic, "metadata": "none", **options})
    batches = read_task(checked, (Range(topic, START, end),))
    return [value.as_py() for batch in batches for value in batch.column("value")]


def write(client: Any, topic: str, directory: Path) -> list[bytes]:
    """Batches and singles in every compression, encrypted and not; large messages of two producers in turn."""
    files = [directory / "public.pem", directory / "private.pem"]
    for file, text in zip(files, reversed(pair()), strict=True):
        file.write_text(text)
    keys = pulsar.CryptoKeyReader(*map(str, files))
    sent = []
    for kind in KINDS:
        for batching in (False, True):
            producer = client.create_producer(
                topic,
                compression_type=getattr(pulsar.CompressionType, kind),
                batching_enabled=batching,
                batching_max_publish_delay_ms=20,
                encryption_key="reader",
                crypto_key_reader=keys,
            )
            for number in range(3):
                sent.append(f"{kind} {batching} {number} ".encode() * 20)
                producer.send_async(sent[-1], lambda *_: None)
            producer.flush()
            producer.close()
    large = [random.Random(number).randbytes(6 << 20) + bytes(6 << 20) for number in range(2)]
    common = {"chunking_enabled": True, "batching_enabled": False}
    plain = client.create_producer(topic, **common)
    locked = client.create_producer(
        topic,
        compression_type=pulsar.CompressionType.LZ4,
        encryption_key="reader",
        crypto_key_reader=keys,
        **common,
    )
    for producer, value in zip((plain, locked), large, strict=True):
        producer.send_async(value, lambda *_: None)
    for producer in (plain, locked):
        producer.flush()
        producer.close()
    return sent + large


def check(url: str, topic: str, directory: Path) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        sent = write(client, topic, directory)
    finally:
        client.close()
    found = everything(url, topic, **{"decryption.privateKey": str(directory / "private.pem")})
    assert sorted(found) == sorted(sent)
    with pytest.raises(UndecryptableError, match=r"encrypted for the keys 'reader'.*'decryption.privateKey'"):
        (directory / "other.pem").write_text(pair(5)[0])
        everything(url, topic, **{"decryption.privateKey": str(directory / "other.pem")})
    assert everything(url, topic, **{"decryption.onFailure": "skip"}) == [sent[-2]]
    consumed = everything(url, topic, **{"decryption.onFailure": "consume"})
    # A batch is one message then, and so is each chunk.
    assert len(consumed) >= 5 * (3 + 1) + 1 + 2
    assert sent[-2] in consumed and not set(sent[:-2]) & set(consumed)


def check_sealed(url: str, topic: str, directory: Path) -> None:
    """What the sink encrypts is read by the official client and by ours."""
    private, public = pair()
    options = sink_options(
        {"service.url": url, "topic": topic, "encryption.publicKey": f'{{"reader": {json.dumps(public)}}}'}
    )
    values: list[bytes | None] = [b"%d" % number for number in range(30)]
    with Lookup(url, timeout=10) as lookup, Producer(lookup, topic, encrypted=True) as producer:
        writer = BatchWriter(
            producer.name, compression=CompressionType.ZSTD, max_messages=10, seal=sealing(options.encryption)
        )
        for batch in writer.pack(int(time.time() * 1000), values, range(30)):
            producer.send(*batch)
        producer.flush()
    files = [directory / "public.pem", directory / "private.pem"]
    for file, text in zip(files, (public, private), strict=True):
        file.write_text(text)
    assert everything(url, topic, **{"decryption.privateKey": str(files[1])}) == values
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        keys = pulsar.CryptoKeyReader(*map(str, files))
        reader = client.create_reader(topic, pulsar.MessageId.earliest, crypto_key_reader=keys)
        assert [reader.read_next(10_000).data() for _ in values] == values
    finally:
        client.close()


def test_what_is_encrypted_here_is_read_by_the_official_client(broker: LiveBroker, tmp_path: Path) -> None:
    check_sealed(broker.url, "persistent://public/default/sealed-partition-0", tmp_path)


def test_chunks_and_encryption_of_the_official_client(broker: LiveBroker, tmp_path: Path) -> None:
    check(broker.url, "persistent://public/default/official-partition-0", tmp_path)
