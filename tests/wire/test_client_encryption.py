"""End-to-end encryption: our native client and the official one read each other, and what becomes of messages without a
key (rules of 6.11)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tools.servers.process import Server

from magnetar import aio
from magnetar.columnar.single_entries.encryption import Decryptor
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.compression import decompress
from magnetar.protocol.entries import EncryptionKey, EntryMetadata
from tests.support.encrypted_entries import key_texts, pair
from tests.wire.conftest import SETTINGS

CHUNKED = os.urandom(int(SETTINGS["maxMessageSize"]) * 2)
EARLIEST = aio.InitialPosition.Earliest


class Files(NamedTuple):
    public: str
    private: str

    @property
    def ours(self) -> aio.CryptoKeyReader:
        return aio.CryptoKeyReader(self.public, self.private)

    @property
    def theirs(self) -> Any:
        return pulsar.CryptoKeyReader(self.public, self.private)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(tmp_path_factory.mktemp("keys"), *pair())


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(tmp_path_factory.mktemp("others"), *pair(1))


def written(folder: Path, private: str, public: str) -> Files:
    (folder / "private.pem").write_text(private)
    (folder / "public.pem").write_text(public)
    return Files(str(folder / "public.pem"), str(folder / "private.pem"))


SENT = [(b"short", {}), (b"abc" * 9_000, {"n": "2"}), (CHUNKED, {})]


@pytest.mark.parametrize("batching", [True, False], ids=["batched", "chunked"])
def test_the_official_client_reads_what_we_encrypt(
    server: Server, client: Any, keys: Files, topic: str, batching: bool
) -> None:
    """In batches and in chunks, compressed, wrapped for two readers (rules 6.11.1, 1.1.10)."""
    wanted = SENT[:2] if batching else SENT
    reader = client.create_reader(topic, pulsar.MessageId.earliest, crypto_key_reader=keys.theirs)

    async def publish() -> None:
        async with aio.Client(server.broker_url) as ours:
            producer = await ours.create_producer(
                topic, compression_type=aio.CompressionType.LZ4, batching_enabled=batching,
                chunking_enabled=not batching, encryption_keys=["one", "two"], crypto_key_reader=keys.ours,
            )  # fmt: skip
            await asyncio.gather(*(producer.send(content, properties) for content, properties in wanted))

    asyncio.run(publish())
    found = [reader.read_next(10_000) for _ in wanted]
    assert [(one.data(), one.properties()) for one in found] == wanted
    wrapped = found[0].encryption_context().keys()
    assert [key.key for key in wrapped] == ["one", "two"]
    reader.close()


@pytest.mark.parametrize("batching", [True, False], ids=["batched", "chunked"])
def test_we_read_what_the_official_client_encrypts(
    server: Server, client: Any, keys: Files, topic: str, batching: bool
) -> None:
    """And the context is what the official client shows of it (rule 6.11.1)."""
    wanted = SENT[:2] if batching else SENT
    producer = client.create_producer(
        topic, compression_type=pulsar.CompressionType.ZSTD, batching_enabled=batching,
        chunking_enabled=not batching, encryption_key="one", crypto_key_reader=keys.theirs,
    )  # fmt: skip
    for content, properties in wanted:
        producer.send_async(content, None, properties)
    producer.flush()

    async def read() -> list[aio.Message]:
        async with (
            aio.Client(server.broker_url) as ours,
            await ours.subscribe(topic, "s", crypto_key_reader=keys.ours, initial_position=EARLIEST) as consumer,
        ):
            found = [await consumer.receive(10_000) for _ in wanted]
            for message in found:
                await consumer.acknowledge(message)
            return found

    found = asyncio.run(read())
    assert [(one.data(), one.properties()) for one in found] == wanted
    context = found[0].encryption_context()
    with_theirs = client.create_reader(topic, pulsar.MessageId.earliest, crypto_key_reader=keys.theirs)
    same = with_theirs.read_next(10_000)
    theirs = same.encryption_context()
    with_theirs.close()
    assert context is not None
    for name in ("param", "algorithm", "uncompressed_message_size", "batch_size", "is_decryption_failed"):
        assert getattr(context, name)() == getattr(theirs, name)(), name
    ours_keys, their_keys = context.keys(), theirs.keys()
    assert [(one.key, one.value) for one in ours_keys] == [(one.key, one.value) for one in their_keys]


def test_what_becomes_of_messages_without_a_key(
    server: Server, keys: Files, others: Files, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """FAIL leaves them unacknowledged, DISCARD acknowledges them, CONSUME delivers them as they are (rule 6.11.2)."""
    actions = aio.ConsumerCryptoFailureAction

    async def all_of_it() -> aio.Message:
        async with aio.Client(server.broker_url) as ours:
            ways: dict[str, dict[str, Any]] = {
                "none": {},
                "fail": {"crypto_key_reader": others.ours},
                "discard": {"crypto_key_reader": others.ours, "crypto_failure_action": actions.DISCARD},
                "consume": {"crypto_failure_action": actions.CONSUME},
            }
            opened = {name: await ours.subscribe(topic, name, **given) for name, given in ways.items()}
            async with await ours.create_producer(
                topic, batching_enabled=True, encryption_key="k", crypto_key_reader=keys.ours
            ) as producer:
                await asyncio.gather(*(producer.send(b"secret %d" % number) for number in range(3)))
            async with await ours.create_producer(topic) as producer:
                await producer.send(b"in clear")
            for name in ("none", "fail", "discard"):
                assert (await opened[name].receive(10_000)).data() == b"in clear", name
            raw = await opened["consume"].receive(10_000)
            assert (await opened["consume"].receive(10_000)).encryption_context() is None
            await opened["consume"].acknowledge(raw)
            for name, left in (("fail", 4), ("discard", 1), ("consume", 1)):
                await opened[name].close()
                again = await ours.subscribe(topic, name, crypto_key_reader=keys.ours)
                got = [(await again.receive(10_000)).data() for _ in range(left)]
                assert got[-1] == b"in clear" and len(set(got)) == left
            return raw

    with caplog.at_level(logging.ERROR):
        raw = asyncio.run(all_of_it())
    context = raw.encryption_context()
    assert context is not None and context.is_decryption_failed() and context.batch_size() == 3
    assert b"secret" not in raw.data()
    shown = context.keys()
    wrapped = tuple(EncryptionKey(one.key, one.value) for one in shown)
    stored = EntryMetadata("", 0, 0, encryption_keys=wrapped, encryption_param=context.param())
    plain = Decryptor({"k": pair()[0]}).plain(stored, raw.data())
    plain = decompress(context.compression_type(), plain, context.uncompressed_message_size(), 1 << 20)
    assert plain.count(b"secret") == 3
    assert "encrypted for the keys 'k'" in caplog.text
    assert "private.pem" not in caplog.text and "PRIVATE" not in caplog.text


class Vault:
    """Keys of an elliptic curve that an application has from elsewhere, with a version beside each."""

    def __init__(self) -> None:
        self.private, self.public = key_texts(ec.generate_private_key(ec.SECP256R1()))
        self.asked: list[dict[str, str]] = []

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> aio.EncryptionKeyInfo:
        return aio.EncryptionKeyInfo(self.public.encode(), {"version": "7"})

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> aio.EncryptionKeyInfo:
        self.asked.append(dict(metadata))
        return aio.EncryptionKeyInfo(self.private.encode())


def test_a_key_reader_of_the_application(server: Server, topic: str) -> None:
    """It is asked once for a data key, with what was noted beside it, on a reader and with partitions too."""
    vault = Vault()

    async def all_of_it() -> list[bytes]:
        async with aio.Client(server.broker_url) as ours:
            producer = await ours.create_producer(topic, encryption_key="k", crypto_key_reader=vault)
            for number in range(5):
                await producer.send(b"%d" % number)
            reader = await ours.create_reader(topic, aio.MessageId.earliest, crypto_key_reader=vault)
            return [(await reader.read_next(10_000)).data() for _ in range(5)]

    assert asyncio.run(all_of_it()) == [b"0", b"1", b"2", b"3", b"4"]
    assert vault.asked == [{"version": "7"}]


def test_nothing_goes_out_in_clear_unless_that_was_chosen(server: Server, keys: Files, topic: str) -> None:
    """A producer whose key cannot be read is not opened; its error names the key and no path (rule 6.11.3)."""
    missing = aio.CryptoKeyReader("/no/such/place/public.pem", None)

    async def all_of_it() -> bytes:
        async with aio.Client(server.broker_url) as ours:
            for reader, said in (
                (missing, r"'k' cannot be read \(FileNotFoundError\)"),
                (aio.CryptoKeyReader(keys.private, None), "no PEM text"),
            ):
                with pytest.raises(aio.CryptoError, match=said) as raised:
                    await ours.create_producer(topic, encryption_key="k", crypto_key_reader=reader)
                assert "/no/such" not in str(raised.value) and raised.value.__cause__ is None
            with pytest.raises(InvalidValueError, match="needs a crypto_key_reader"):
                await ours.create_producer(topic, encryption_key="k")
            with pytest.raises(InvalidValueError, match="name an encryption_key"):
                await ours.create_producer(topic, crypto_key_reader=keys.ours)
            from_start = await ours.create_reader(topic, aio.MessageId.earliest)
            producer = await ours.create_producer(
                topic, encryption_key="k", crypto_key_reader=missing,
                crypto_failure_action=aio.ProducerCryptoFailureAction.SEND,
            )  # fmt: skip
            await producer.send(b"in clear")
            return (await from_start.read_next(10_000)).data()

    assert asyncio.run(all_of_it()) == b"in clear"
