"""The data key of a producer: four hours old at most, and never given up for sending in clear."""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction, ProducerCryptoFailureAction
from magnetar.client.encryption.crypto_key_reader import (
    KEY_BYTES_MAX,
    CryptoKeyReader,
    EncryptionKeyInfo,
    UriKeyReader,
)
from magnetar.client.encryption.message_sealer import LIFETIME, RETRY, MessageSealer
from magnetar.client.encryption.message_unsealer import MessageUnsealer
from magnetar.client.errors import CryptoError
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import EntryMetadata
from tests.support.encrypted_entries import pair

METADATA = EntryMetadata("p", 1, 2)
SECRET = "/vault/of/alice: hunter2"


class Vault:
    """Gives its keys, or fails with a text that must be shown nowhere."""

    def __init__(self) -> None:
        self.gives = True
        self.asked = 0

    def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return self._key(pair()[1])

    def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return self._key(pair()[0])

    def _key(self, text: str) -> EncryptionKeyInfo:
        self.asked += 1
        if not self.gives:
            raise PermissionError(SECRET)
        return EncryptionKeyInfo(text.encode())


def data_key(sealer: MessageSealer) -> bytes:
    return sealer.seal(METADATA, b"x")[0].encryption_keys[0].value


def test_a_data_key_lives_for_four_hours_and_longer_if_there_is_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """Renewal that fails keeps what there is, and is tried again a minute later."""
    vault = Vault()
    sealer = MessageSealer(["k"], vault)
    sealer.renew(0.0)
    first = data_key(sealer)
    sealer.renew(LIFETIME - 1)
    assert (data_key(sealer), vault.asked) == (first, 1)
    vault.gives = False
    sealer.renew(LIFETIME)
    assert (data_key(sealer), vault.asked) == (first, 2)
    assert "'k' cannot be read (PermissionError); the data key of before stays in use" in caplog.text
    vault.gives = True
    sealer.renew(LIFETIME + RETRY)
    assert (data_key(sealer) != first, vault.asked) == (True, 3)
    assert "hunter2" not in caplog.text and "alice" not in caplog.text


def test_a_producer_that_may_send_in_clear_encrypts_as_soon_as_it_can(caplog: pytest.LogCaptureFixture) -> None:
    """SEND is for a key that cannot be read yet; once there is a data key nothing goes out in clear again."""
    vault = Vault()
    vault.gives = False
    with pytest.raises(CryptoError, match=r"^public key 'k' cannot be read \(PermissionError\)$") as raised:
        MessageSealer(["k"], vault).renew(0.0)
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    sealer = MessageSealer(["k"], vault, ProducerCryptoFailureAction.SEND)
    sealer.renew(0.0)
    assert sealer.seal(METADATA, b"x") == (METADATA, b"x") and "in clear" in caplog.text
    vault.gives = True
    sealer.renew(RETRY)
    first = data_key(sealer)
    vault.gives = False
    sealer.renew(RETRY + LIFETIME)
    assert data_key(sealer) == first
    assert sealer.overhead > len(first)


def test_names_and_readers_that_are_none() -> None:
    for names in ([], [""], "k"):
        with pytest.raises(InvalidValueError, match="encryption_keys"):
            MessageSealer(names, Vault())
    with pytest.raises(InvalidValueError, match="get_public_key"):
        MessageSealer(["k"], "public.pem")  # type: ignore[arg-type]  # what a newcomer types first
    with pytest.raises(InvalidValueError, match="get_private_key"):
        MessageUnsealer("private.pem")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="public_key_path is the path of a PEM file"):
        CryptoKeyReader(b"-----BEGIN", None)  # type: ignore[arg-type]


def test_what_a_key_reader_may_do_to_a_consumer(caplog: pytest.LogCaptureFixture) -> None:
    """Its error leaves one line without its text; after ten of them there are no more."""
    vault = Vault()
    sealer = MessageSealer(["k"], vault)
    sealer.renew(0.0)
    metadata, sealed = sealer.seal(METADATA, b"plain")
    vault.gives = False
    unsealer = MessageUnsealer(vault, ConsumerCryptoFailureAction.CONSUME)
    for number in range(30):
        assert unsealer.open(f"t: entry 1:{number}", metadata, sealed) is None
    assert len(caplog.records) == 10 and "others that follow are not named" in caplog.records[-1].message
    assert "t: entry 1:0 is encrypted for the keys 'k'" in caplog.text and "PermissionError" in caplog.text
    assert "hunter2" not in caplog.text
    vault.gives, asked = True, vault.asked
    assert [unsealer.open("t", metadata, sealed) for _ in range(3)] == [b"plain"] * 3
    assert vault.asked == asked + 1
    with caplog.at_level(logging.DEBUG):
        assert unsealer.open("t", metadata, sealed[:-1]) is None


def test_keys_from_uris(tmp_path_factory: pytest.TempPathFactory) -> None:
    """As Java's default reader takes them: a file or the data, for all names or for each."""
    folder = tmp_path_factory.mktemp("keys")
    (folder / "k.pem").write_text(pair()[1])
    data = "data:application/x-pem-file;base64," + base64.b64encode(pair()[0].encode()).decode()
    reader = UriKeyReader(f"file://{folder}/k.pem", {"k": data})
    assert reader.get_public_key("any", {}).key == pair()[1].encode()
    assert reader.get_private_key("k", {}).key == pair()[0].encode()
    with pytest.raises(InvalidValueError, match="no key 'other'"):
        reader.get_private_key("other", {})
    with pytest.raises(InvalidValueError, match="no base64"):
        UriKeyReader("data:;base64,é").get_public_key("k", {})
    with pytest.raises(InvalidValueError, match="file:///path or data:"):
        UriKeyReader("k.pem")
    (folder / "huge").write_bytes(b"-" * (KEY_BYTES_MAX + 1))
    with pytest.raises(InvalidValueError, match="more than"):
        CryptoKeyReader(str(folder / "huge"), None).get_public_key("k", {})
    assert str(folder) not in repr(reader) + repr(CryptoKeyReader(str(folder), None))


def test_a_key_that_is_none_is_told_from_a_reader_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """The reader has raised nothing: what it gave is a public key."""
    sealer = MessageSealer(["k"], Vault())
    sealer.renew(0.0)
    metadata, payload = sealer.seal(METADATA, b"x")

    class Mistaken(Vault):
        def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
            return self.get_public_key(key_name, metadata)

    assert MessageUnsealer(Mistaken()).open("message 1:2", metadata, payload) is None
    assert (
        "; private key 'k' is no PEM text of a known kind without a password, as the key reader gave it" in caplog.text
    )
    assert "raised" not in caplog.text


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_key_reader_that_wants_to_end_the_program_has_failed(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """On a thread of a client it would end the client, or have it connect again for ever."""

    class Ends(CryptoKeyReader):
        def __init__(self) -> None:
            pass

        def get_public_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
            raise error(SECRET)

        def get_private_key(self, key_name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
            raise error(SECRET)

    sealer = MessageSealer(["k"], Vault())
    sealer.renew(0.0)
    metadata, sealed = sealer.seal(METADATA, b"x")
    with ThreadPoolExecutor(1) as other:
        with pytest.raises(CryptoError, match=rf"public key 'k' cannot be read \({error.__name__}\)"):
            other.submit(MessageSealer(["k"], Ends()).renew, 0.0).result()
        assert other.submit(MessageUnsealer(Ends()).open, "here", metadata, sealed).result() is None
    assert f"the key reader raised {error.__name__}" in caplog.text
    if error is KeyboardInterrupt:  # the user's Ctrl-C
        with pytest.raises(KeyboardInterrupt):
            MessageUnsealer(Ends()).open("here", metadata, sealed)


@pytest.mark.parametrize("given", [Path("/k.pem"), 5, {"a": Path("/k.pem")}, "/k.pem"], ids=str)
def test_a_key_that_is_no_uri_is_refused_in_words(given: Any) -> None:
    with pytest.raises(InvalidValueError, match="a key is file:///path"):
        UriKeyReader(given)


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    """A program whose key file is one did not end: its thread waited for the writer."""
    os.mkfifo(tmp_path / "pipe")
    assert CryptoKeyReader(f"{tmp_path}/pipe", None).get_public_key("k", {}).key == b""
    assert UriKeyReader(f"file://{tmp_path}/pipe").get_public_key("k", {}).key == b""
