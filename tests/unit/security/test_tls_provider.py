"""Roles from client certificates."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from hashlib import sha256
from types import SimpleNamespace
from typing import Literal

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from magnetar.config.settings import Settings
from magnetar.model.errors import AuthenticationError
from magnetar.security.authentication.peer_certificate import verified_certificate
from magnetar.security.authentication.provider import Credentials
from magnetar.security.authentication.revocation_list import parse
from magnetar.security.authentication.tls_provider import TlsProvider
from magnetar.security.identity import Identity
from tests.support.at_once import at_once
from tests.support.signed_tokens import ec_key

_HOUR = datetime.timedelta(hours=1)
BEGUN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CN, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME


def certificate(
    subject: list[tuple[x509.ObjectIdentifier, str]], *names: x509.GeneralName, algorithm: str = "ES256"
) -> bytes:
    """A certificate with this subject; nobody checks who issued it, which is TLS's part."""
    key = ec_key(algorithm)
    name = x509.Name([x509.NameAttribute(kind, value, _validate=False) for kind, value in subject])
    begun = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(BEGUN)
        .not_valid_after(BEGUN + datetime.timedelta(days=1))
    )
    if names:
        begun = begun.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return begun.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def judged(
    data: bytes | None, field: Literal["CN", "URI", "DNS", "EMAIL"] = "CN", after: datetime.timedelta = _HOUR
) -> Identity:
    """What the provider finds so long after the certificate's first moment."""
    now_ms = int((BEGUN + after).timestamp() * 1000)
    provider = TlsProvider.of(Settings(tlsClientRoleField=field), SimpleNamespace(now_ms=lambda: now_ms))
    return at_once(provider.authenticate(Credentials(b"ignored", data)))


def test_the_common_name_is_the_role() -> None:
    """As Pulsar takes it: the last one of the subject; commas in it belong to it (rule 12.4)."""
    data = certificate([(OU, "x"), (CN, "superUser")])
    found = judged(data)
    ends = (BEGUN + datetime.timedelta(days=1)).timestamp()
    assert (found.role, found.method, found.expires_at) == ("superUser", "tls", ends)
    assert found.fingerprint == sha256(data).hexdigest()
    assert judged(certificate([(CN, "first"), (CN, "last")])).role == "last"
    assert judged(certificate([(CN, "a,CN=admin")])).role == "a,CN=admin"


def test_a_certificate_counts_until_its_end() -> None:
    """TLS has looked at it when the connection began, which may be long ago."""
    data = certificate([(CN, "x")])
    assert judged(data, after=datetime.timedelta(hours=24)).role == "x"
    with pytest.raises(AuthenticationError, match=r"has expired \(2026-01-02 00:00:00 UTC\)"):
        judged(data, after=datetime.timedelta(hours=24, seconds=1))


def test_alternative_names() -> None:
    names = (
        x509.DNSName("client.example.com"),
        x509.UniformResourceIdentifier("spiffe://example.com/client"),
        x509.RFC822Name("client@example.com"),
    )
    data = certificate([(CN, "x")], *names)
    assert judged(data, "URI").role == "spiffe://example.com/client"
    assert judged(data, "DNS").role == "client.example.com"
    assert judged(data, "EMAIL").role == "client@example.com"
    with pytest.raises(AuthenticationError, match="the certificate has no URI"):
        judged(certificate([(CN, "x")]), "URI")
    with pytest.raises(AuthenticationError, match="the certificate has no URI"):
        judged(certificate([(CN, "x")], x509.DNSName("h")), "URI")


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512"])
def test_a_revoked_certificate_does_not_come_back_with_its_signature_written_in_the_other_way(algorithm: str) -> None:
    """An ECDSA signature (r, s) verifies as (r, n - s), too; the digest of such a certificate is in no list."""
    key = ec_key(algorithm)
    data = certificate([(CN, "x")], algorithm=algorithm)
    issued = x509.load_der_x509_certificate(data)
    r, s = decode_dss_signature(issued.signature)
    other = encode_dss_signature(r, key.curve.group_order - s)
    key.public_key().verify(other, issued.tbs_certificate_bytes, ec.ECDSA(hashes.SHA256()))
    forged = rewritten(issued, other)
    assert x509.load_der_x509_certificate(forged).tbs_certificate_bytes == issued.tbs_certificate_bytes
    for listed in (data, forged):
        revoked = parse(f"sha256 {sha256(listed).hexdigest()}")
        assert revoked.include(judged(data))
        assert revoked.include(judged(forged))
        assert not revoked.include(judged(certificate([(CN, "x")], algorithm=algorithm)))


def rewritten(issued: x509.Certificate, signature: bytes) -> bytes:
    """The certificate with another signature of the same or nearly the same size, by OpenSSL's way to count."""
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    content = issued.tbs_certificate_bytes + algorithm + der(3, b"\0" + signature)
    return der(0x30, content)


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    head = bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else bytes([0x82]) + size.to_bytes(2)
    return bytes([tag]) + head + content


def test_only_a_verified_certificate_counts() -> None:
    class Wrapped(asyncio.BaseTransport):
        def __init__(self, mode: ssl.VerifyMode, shown: bytes | None) -> None:
            context = SimpleNamespace(verify_mode=mode)
            found = SimpleNamespace(context=context, getpeercert=lambda binary_form: shown if binary_form else {})
            super().__init__({"ssl_object": found})

    assert verified_certificate(Wrapped(ssl.CERT_REQUIRED, b"der")) == b"der"
    assert verified_certificate(Wrapped(ssl.CERT_OPTIONAL, b"der")) == b"der"
    assert verified_certificate(Wrapped(ssl.CERT_OPTIONAL, None)) is None
    assert verified_certificate(Wrapped(ssl.CERT_NONE, b"der")) is None
    assert verified_certificate(asyncio.BaseTransport()) is None


def test_certificates_that_name_nobody() -> None:
    for data, said in (
        (None, "no client certificate"),
        (b"", "cannot be read"),
        (b"\x30\x82", "cannot be read"),
        (certificate([(OU, "x")]), "the certificate has no CN"),
        (certificate([(CN, "admin\0.x")]), "cannot be shown"),
        (certificate([(CN, " ")]), "is empty"),
    ):
        with pytest.raises(AuthenticationError, match=said):
            judged(data)
