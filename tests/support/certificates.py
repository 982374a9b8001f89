"""Certificates for tests, made when they are needed: authorities, servers, clients, on elliptic curves for speed."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOSTS = ("localhost", "127.0.0.1", "::1")
_DAY = datetime.timedelta(days=1)
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Issued:
    """One certificate with its key, as objects and as files."""

    certificate: x509.Certificate
    key: Key
    certificate_file: str
    key_file: str

    def key_store(self, path: Path, password: str, *authorities: x509.Certificate) -> str:
        """A PKCS12 file with certificate and key; returns its path."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(b"broker", self.key, self.certificate, authorities, encryption)
        )
        return str(path)


class Authority:
    """Issues certificates into one directory.

    Not ``strict``: its own certificate does not say what its key is for, as many do not. OpenSSL takes it, and Python's
    default context did until 3.12.
    """

    def __init__(self, directory: Path, name: str = "Test authority", *, strict: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        builder = (
            _begun(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        )
        if strict:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256())
        self.file = str(directory / "authority.pem")
        Path(self.file).write_bytes(_pem(self.certificate))

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = HOSTS,
        *,
        days: float = 1,
        begins: float = -1,
        key: Key | None = None,
        file: str | None = None,
    ) -> Issued:
        """Make a certificate for ``name`` and write both files, again if they are there; ``days`` may be negative, and
        its time may begin only in some days."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _begun(_named(name), self._name, key, days, begins)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts or (name,)]), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        stem = file or name.replace("/", "-").replace(" ", "-")
        certificate_file, key_file = self._directory / f"{stem}.pem", self._directory / f"{stem}.key.pem"
        certificate_file.write_bytes(_pem(certificate))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        key_file.chmod(0o600)
        return Issued(certificate, key, str(certificate_file), str(key_file))


def trust_store(path: Path, password: str, *authorities: x509.Certificate) -> str:
    """A PKCS12 file with certificates only, as keytool writes a trust store; returns its path."""
    encryption = serialization.BestAvailableEncryption(password.encode())
    named = [pkcs12.PKCS12Certificate(authority, f"authority-{number}".encode())
             for number, authority in enumerate(authorities)]  # fmt: skip
    path.write_bytes(pkcs12.serialize_java_truststore(named, encryption))
    return str(path)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: Key, days: float = 30, begins: float = -1
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + (min(days, 0) + begins) * _DAY)
        .not_valid_after(now + days * _DAY)
    )
