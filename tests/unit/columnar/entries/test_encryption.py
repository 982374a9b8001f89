"""Encrypted entries are opened with the key, in any compression, in batches and in chunks."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from magnetar.columnar.single_entries import wrapped_key
from magnetar.columnar.single_entries.encryption import ANY, Decryptor, Encryptor, UndecryptableError
from magnetar.columnar.single_entries.opener import CryptoFailureAction, EntryOpener
from magnetar.columnar.single_entries.wrapped_key import NotUnwrappedError, load_private, oaep, unwrap
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.compression import CompressionType, decompress
from magnetar.protocol.entries import EncryptionKey, metadata_of, payload_of, split_batch
from tests.support.batch_writer import BatchWriter
from tests.support.chunked_messages import chunks
from tests.support.encrypted_entries import key_texts, pair, sealed

JAVA_PRIVATE = """-----BEGIN PRIVATE KEY-----
MIGTAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBHkwdwIBAQQgNV9BKq+gqqt7IfW9
iO4VNGt/i+BjipxMMZb9fectbr+gCgYIKoZIzj0DAQehRANCAATeDMA6vgxAYRsy
ofMjzoSdgXKSn2bOVHs8Hkv4UWPso3/aXeGO6xe9CqrWdyjI22KNDaRs5Iuu92xv
Gt68HhsQ
-----END PRIVATE KEY-----
"""
JAVA_WRAPPED = (
    "04f773de27a0fc176df44d165dc1fbf29fb7e7ab179fdfaff53c94ae551e1ce2170316d1740853b30ddab758057744c08d10"
    "6b48a939eac05d98b97e965b86a638422a93e794d85a3c7e4fb95aec7aed3efc814c630e8764c59504be335b1ef7819f02e0"
    "76444ddd222ca8e2d1feb36a86a1d60557"
)
"""The bytes 0 to 31, wrapped by Bouncy Castle 1.78.1 with its defaults."""


def opener(
    failure: CryptoFailureAction = CryptoFailureAction.FAIL, told: list[str] | None = None, **keys: str
) -> EntryOpener:
    return EntryOpener("t", 1_000, Decryptor(keys), failure, None if told is None else told.append)


@pytest.mark.parametrize("kind", CompressionType)
def test_a_batch_is_encrypted_after_it_was_compressed(kind: CompressionType) -> None:
    """A batch is packed, compressed and then encrypted (rule 1.1.10)."""
    (batch,) = BatchWriter("p", compression=kind).pack(5, [b"a" * 50, None, b"c"], [1, 2, 3], [b"k", None, b"k"])
    entry = sealed(batch.entry)
    assert b"a" * 50 not in entry
    found = opener(k=pair()[0]).open(1, 2, entry)
    assert found is not None
    metadata = metadata_of(found.data)
    assert metadata == metadata_of(batch.entry)
    plain = decompress(kind, payload_of(found.data), metadata.uncompressed_size, 1 << 20)
    assert [payload for _, payload in split_batch(plain, 3)] == [b"a" * 50, b"", b"c"]


def test_a_wrapped_key_as_long_as_a_message_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every producer can write one, since curves are public, and a pad of its length would take minutes."""
    key = load_private("k", JAVA_PRIVATE)
    wrapped = bytes.fromhex(JAVA_WRAPPED)
    assert unwrap(key, wrapped) == bytes(range(32))
    monkeypatch.setattr(wrapped_key, "_derived", lambda *_: pytest.fail("a pad was derived"))
    with pytest.raises(NotUnwrappedError, match="longer than any data key"):
        unwrap(key, wrapped[:65] + bytes(5 << 20) + wrapped[-20:])


def test_a_key_for_all_names_and_several_readers() -> None:
    """The data key is wrapped for each public key, and each private key opens the message (rule 6.11.1)."""
    (entry,) = chunks("", b"x", 1)
    for_two = sealed(entry, one=pair(1)[1], two=pair(2)[1])
    for keys in ({ANY: pair(2)[0]}, {"two": pair(2)[0]}, {"one": pair(1)[0], "other": pair(3)[0]}):
        found = EntryOpener("t", 1, Decryptor(keys)).open(1, 0, for_two)
        assert found is not None and payload_of(found.data) == b"x"
    plain = opener(k=pair()[0]).open(1, 0, entry)
    assert plain is not None and plain.data == entry


@pytest.mark.parametrize("kind", [CompressionType.NONE, CompressionType.LZ4])
def test_each_chunk_is_encrypted_by_itself(kind: CompressionType) -> None:
    """A message is compressed, cut into chunks, and each chunk encrypted (rule 1.1.10)."""
    reader, found = opener(k=pair()[0]), []
    for number, data in enumerate(chunks("u", b"abc" * 100, 3, kind=kind)):
        found.append(reader.open(1, number, sealed(data)))
    assert found[:2] == [None, None] and found[2] is not None
    assert (found[2].entry, payload_of(found[2].data)) == (0, b"abc" * 100)


def test_what_no_key_opens_fails_or_is_left_out() -> None:
    """What no key opens fails the reader, or is left out where that was asked for (rule 6.11.2)."""
    entry = sealed(chunks("", b"x", 1)[0])
    with pytest.raises(UndecryptableError, match=r"entry 1:2 is encrypted for the keys 'k', .* \(none\).*privateKey"):
        opener().open(1, 2, entry)
    with pytest.raises(UndecryptableError, match=r"\('k'\)"):
        opener(k=pair(9)[0]).open(1, 2, entry)
    damaged = entry[:-1] + bytes([entry[-1] ^ 1])
    with pytest.raises(UndecryptableError):
        opener(k=pair()[0]).open(1, 2, damaged)
    told: list[str] = []
    assert opener(CryptoFailureAction.SKIP, told).open(1, 2, entry) is None
    assert told[0].endswith("it is left out")
    skipping = opener(CryptoFailureAction.SKIP, told)
    for number in range(30):
        skipping.open(1, number, entry)
    assert len(told) == 11 and told[-1].endswith("which are not named")
    with pytest.raises(UndecryptableError, match=r"give the option 'decryption\.privateKey'"):
        EntryOpener("t", 1).open(1, 2, entry)


def test_what_no_key_opens_is_given_with_all_that_a_key_holder_needs() -> None:
    """Where that was asked for, what no key opens is delivered raw, a batch as one message (rule 6.11.2)."""
    (batch,) = BatchWriter("p").pack(5, [b"a", b"b"], [1, 2])
    found = opener(CryptoFailureAction.CONSUME).open(1, 2, sealed(batch.entry))
    assert found is not None
    metadata = metadata_of(found.data)
    assert (metadata.num_messages_in_batch, metadata.encryption_keys) == (None, ())
    notes = {name.removeprefix("pulsar.encryption."): text for name, text in metadata.properties}
    assert (notes["compression"], notes["numMessagesInBatch"]) == ("NONE", "2")
    key = serialization.load_pem_private_key(pair()[0].encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    cipher = AESGCM(key.decrypt(base64.b64decode(notes["key.k"]), oaep()))
    plain = cipher.decrypt(base64.b64decode(notes["param"]), payload_of(found.data), None)
    assert [payload for _, payload in split_batch(plain, 2)] == [b"a", b"b"]


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda one: one.name)
def test_data_keys_are_wrapped_for_elliptic_curves_too(curve: ec.EllipticCurve) -> None:
    """ECIES as Java's client wraps (rule 6.11.1); a key of another owner, or a changed byte, opens nothing."""
    private, public = key_texts(ec.generate_private_key(curve))
    other, _ = key_texts(ec.generate_private_key(curve))
    (entry,) = chunks("", b"x", 1)
    entry = sealed(entry, k=public)
    found = opener(k=private).open(1, 0, entry)
    assert found is not None and payload_of(found.data) == b"x"
    for wrong in (other, pair()[0]):
        with pytest.raises(UndecryptableError):
            opener(k=wrong).open(1, 0, entry)
    wrapped = metadata_of(entry).encryption_keys[0].value
    for place in range(0, len(wrapped), 7):
        changed = wrapped[:place] + bytes([wrapped[place] ^ 1]) + wrapped[place + 1 :]
        with pytest.raises(NotUnwrappedError):
            unwrap(load_private("k", private), changed)
    for short in (b"", wrapped[:20], wrapped[:-21]):
        with pytest.raises(NotUnwrappedError):
            unwrap(load_private("k", private), short)


def test_what_was_wrapped_by_bouncy_castle() -> None:
    """A data key as `Cipher.getInstance("ECIES", "BC")` of Apache Pulsar 4.0.8 wrapped it."""
    assert unwrap(load_private("k", JAVA_PRIVATE), bytes.fromhex(JAVA_WRAPPED)) == bytes(range(32))


def test_a_message_with_thousands_of_keys_costs_a_hundred_tries() -> None:
    """Each wrapped key that is tried takes a millisecond, and a stranger may list any number of them."""
    asked: list[str] = []

    def find(wrapped: EncryptionKey) -> None:
        asked.append(wrapped.key)

    metadata = replace(
        metadata_of(sealed(chunks("", b"x", 1)[0])), encryption_keys=(EncryptionKey("n" * 900, b""),) * 5_000
    )
    with pytest.raises(UndecryptableError, match="and 4995 more") as raised:
        Decryptor({}, find).plain(metadata, b"")
    assert len(asked) == 100 and len(str(raised.value)) < 700


def test_keys_that_are_none() -> None:
    private, public = key_texts(ed25519.Ed25519PrivateKey.generate())
    with pytest.raises(InvalidValueError, match=r"private key 'k' is Ed25519PrivateKey; .* wrapped with RSA or a key"):
        Decryptor({"k": private})
    with pytest.raises(InvalidValueError, match="public key 'k' is Ed25519PublicKey"):
        Encryptor({"k": public})
    with pytest.raises(InvalidValueError, match="private key 'k' is no PEM text"):
        Decryptor({"k": "nonsense"})
    with pytest.raises(InvalidValueError, match="public key 'k' is no PEM text"):
        Encryptor({"k": "nonsense"})
    with pytest.raises(InvalidValueError, match="no public key"):
        Encryptor({})
