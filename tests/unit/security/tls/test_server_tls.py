"""Contexts of a door from files and key stores: what they trust, what is refused, what a change of files does."""

from __future__ import annotations

import logging
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.security.tls.broker_tls import BrokerTls
from magnetar.security.tls.key_store import read_key_store
from magnetar.security.tls.server_tls import ServerTls
from tests.support.certificates import Authority, Issued, trust_store
from tests.support.pipes import named_pipe


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def shown(authority: Authority) -> Issued:
    return authority.issue("broker")


def door(**settings: Any) -> ServerTls:
    return ServerTls.of(Settings(**settings), "", "")


def files(shown: Issued) -> dict[str, Any]:
    return {"tlsCertificateFilePath": shown.certificate_file, "tlsKeyFilePath": shown.key_file}


def meet(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both sides of a finished handshake in memory. Raises what either side raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(4):
        for side in (theirs, ours):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    ours.do_handshake()
    return ours, theirs


def client(authority: Authority, own: Issued | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if own is not None:
        context.load_cert_chain(own.certificate_file, own.key_file)
    return context


def test_files_and_key_stores_show_the_same(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    """PKCS12 under Java's ending for it, with another password for each store."""
    store = shown.key_store(tmp_path / "keystore.jks", "secret1", authority.certificate)
    trusted = trust_store(tmp_path / "truststore.jks", "secret2", authority.certificate)
    own = authority.issue("client")
    by_store = door(
        tlsEnabledWithKeyStore=True, tlsKeyStore=store, tlsKeyStorePassword="secret1",
        tlsTrustStore=trusted, tlsTrustStorePassword="secret2",
    )  # fmt: skip
    ours, theirs = meet(by_store.context(), client(authority, own))
    assert theirs.getpeercert(True) == shown.certificate.public_bytes(serialization.Encoding.DER)
    assert ours.getpeercert(True) == own.certificate.public_bytes(serialization.Encoding.DER)
    assert by_store.context().verify_mode == ssl.CERT_OPTIONAL
    assert not list(tmp_path.glob("*.pem")), "no key is left on the disk"


def test_what_stands_in_trust_stores_and_key_stores(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    stored = read_key_store(shown.key_store(tmp_path / "k.p12", "p", authority.certificate), "p")
    assert stored.key is not None
    assert b"ENCRYPTED" in stored.key
    assert stored.chain.count(b"BEGIN CERTIFICATE") == 2
    assert stored.trusted.count("BEGIN CERTIFICATE") == 1


@pytest.mark.parametrize("magic", [b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"])
def test_the_format_of_before_java_9_is_refused_with_the_command(tmp_path: Path, magic: bytes) -> None:
    old = tmp_path / "old.jks"
    old.write_bytes(magic + b"\0\0\0\2" * 10)
    with pytest.raises(InvalidValueError) as refused:
        door(tlsEnabledWithKeyStore=True, tlsKeyStore=str(old), tlsKeyStorePassword="p")
    assert f"keytool -importkeystore -srckeystore {old} -destkeystore {tmp_path}/old.p12" in str(refused.value)


def test_key_stores_that_cannot_be_used_are_named(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    store = shown.key_store(tmp_path / "k.p12", "right")
    trusted = trust_store(tmp_path / "t.p12", "right", authority.certificate)
    (tmp_path / "junk").write_bytes(b"junk")
    (tmp_path / "huge").write_bytes(bytes((16 << 20) + 1))
    for settings, said in (
        ({"tlsKeyStore": ""}, "tlsKeyStore: tlsEnabledWithKeyStore needs a key store"),
        ({"tlsKeyStore": str(tmp_path / "none")}, "none: No such file"),
        ({"tlsKeyStore": store}, "not a key store in the format PKCS12, or its password is another one"),
        ({"tlsKeyStore": str(tmp_path / "junk")}, "junk: not a key store"),
        ({"tlsKeyStore": str(tmp_path / "huge")}, "are no key store"),
        ({"tlsKeyStore": trusted, "tlsKeyStorePassword": "right"}, "no key with a certificate"),
    ):
        with pytest.raises(InvalidValueError, match=said) as refused:
            door(tlsEnabledWithKeyStore=True, **settings)
        assert "right" not in str(refused.value)


def test_each_door_offers_its_own_protocols_and_ciphers(authority: Authority, shown: Issued) -> None:
    """tlsProtocols and tlsCiphers of the binary port, webServiceTlsProtocols and webServiceTlsCiphers of the other."""
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" if "EC" in type(shown.key).__name__ else (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    )  # fmt: skip
    binary, http = BrokerTls(
        Settings(
            brokerServicePortTls=0, webServicePortTls=0, tlsProtocols="TLSv1.3", webServiceTlsProtocols="TLSv1.2",
            webServiceTlsCiphers=suite, **files(shown),
        )
    ).contexts  # fmt: skip
    first, _ = meet(binary.context(), client(authority))
    second, _ = meet(http.context(), client(authority))
    assert (first.version(), second.version()) == ("TLSv1.3", "TLSv1.2")
    chosen = second.cipher()
    assert chosen is not None
    assert "AES256-GCM-SHA384" in chosen[0]
    old = client(authority)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        meet(binary.context(), old)
    narrow = client(authority)
    narrow.set_ciphers("ECDHE+AES128")
    narrow.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        meet(http.context(), narrow)
    (older,) = BrokerTls(Settings(webServicePortTls=0, webServiceTlsProtocols="TLSv1.2", **files(shown))).contexts
    third, _ = meet(older.context(), client(authority))
    assert third.version() == "TLSv1.2", "by its protocols, without a list of ciphers"


def test_files_that_cannot_be_used_refuse_the_start(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    other = authority.issue("other")
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        shown.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"p"),
        )
    )
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    small = authority.issue("small", key=rsa.generate_private_key(public_exponent=65537, key_size=1024))
    for settings, said in (
        ({}, "tlsCertificateFilePath: a port with TLS needs a certificate and its key"),
        ({"tlsCertificateFilePath": shown.certificate_file}, "tlsKeyFilePath: a port with TLS"),
        ({**files(shown), "tlsKeyFilePath": str(tmp_path / "none")}, "TLS: tlsKeyFilePath: .*none: No such file"),
        (
            {**files(shown), "tlsCertificateFilePath": str(tmp_path)},
            "tlsCertificateFilePath: .*name the file in",
        ),
        ({**files(shown), "tlsKeyFilePath": str(junk)}, "tlsKeyFilePath: .*junk.pem: there is no private key in PEM"),
        (
            {**files(shown), "tlsKeyFilePath": shown.certificate_file},
            "there is no private key in PEM form in",
        ),
        (
            {**files(shown), "tlsTrustCertsFilePath": str(tmp_path / "none")},
            "tlsTrustCertsFilePath: .*whole path",
        ),
        ({**files(shown), "tlsKeyFilePath": other.key_file}, "the key does not belong to the certificate"),
        ({**files(shown), "tlsKeyFilePath": str(locked)}, "the key is encrypted"),
        ({**files(shown), "tlsCertificateFilePath": str(junk)}, "junk.pem: there is no certificate in PEM"),
        ({**files(shown), "tlsTrustCertsFilePath": str(junk)}, r"junk\.pem: there is no certificate in PEM form"),
        ({**files(small)}, "EE_KEY_TOO_SMALL"),
        ({**files(shown), "tlsRequireTrustedClientCertOnConnect": True}, "nothing to check certificates against"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            door(**settings)


@pytest.mark.parametrize("setting", ["tlsCertificateFilePath", "tlsKeyFilePath", "tlsTrustCertsFilePath"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, shown: Issued, setting: str) -> None:
    with (
        named_pipe(tmp_path / "pipe") as pipe,
        pytest.raises(InvalidValueError, match=f"{pipe} is a pipe; name a file"),
    ):
        door(**{**files(shown), setting: pipe})


def test_a_key_that_others_may_read_is_named(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    issued = authority.issue("open")
    Path(issued.key_file).chmod(0o644)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):  # a broker has two ports with TLS
            door(**files(issued))
    warnings = [one.message for one in caplog.records]
    assert warnings == [
        f"tlsKeyFilePath: {issued.key_file} holds a secret and is open to every user of this machine (mode 0644): "
        f"chmod 600 {issued.key_file}"
    ]


def test_a_certificate_whose_time_is_over_is_named(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """It is served, as a client may not look at it; at each load the log says why clients turn away."""
    issued = authority.issue("late", days=-1)
    store = issued.key_store(tmp_path / "late.p12", "p")
    with caplog.at_level(logging.WARNING):
        door(**files(authority.issue("good")))
        assert "has expired" not in caplog.text
        door(**files(issued))
        door(tlsEnabledWithKeyStore=True, tlsKeyStore=store, tlsKeyStorePassword="p")
    for file in (issued.certificate_file, store):
        assert f"the certificate of {file} has expired" in caplog.text


def test_a_certificate_whose_time_has_not_begun_is_named(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """An authority's clock may be ahead of this machine's, and clients turn away as from an expired one."""
    issued = authority.issue("early", days=3, begins=2)
    with caplog.at_level(logging.WARNING):
        door(**files(issued))
    assert f"the certificate of {issued.certificate_file} is not valid yet" in caplog.text


def test_an_intermediate_authority_is_enough(tmp_path: Path, authority: Authority, shown: Issued) -> None:
    """As in Java: any certificate of the file is an anchor, the client's own included."""
    own = authority.issue("client")
    tls = door(**files(shown), tlsTrustCertsFilePath=own.certificate_file, tlsRequireTrustedClientCertOnConnect=True)
    ours, _ = meet(tls.context(), client(authority, own))
    assert ours.getpeercert(True) == own.certificate.public_bytes(serialization.Encoding.DER)
    with pytest.raises(ssl.SSLError):
        meet(tls.context(), client(authority, authority.issue("another")))


def test_no_session_is_resumed(authority: Authority, shown: Issued) -> None:
    """A ticket would carry a certificate that was trusted once past the check of the next connection."""
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = door(**files(shown)).context()
        wanted = client(authority)
        wanted.maximum_version = version
        _, theirs = meet(context, wanted)
        with pytest.raises(ssl.SSLWantReadError):
            theirs.read(1)
        assert theirs.session is None or not theirs.session.has_ticket


def test_a_change_that_cannot_be_loaded_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("broker", file="shown")
    tls = door(**files(issued))
    first = tls.context()
    tls.refresh()
    assert tls.context() is first
    new_key = authority.issue("broker", file="new")
    Path(issued.key_file).write_bytes(Path(new_key.key_file).read_bytes())
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            tls.refresh()
        assert tls.context() is first
        assert caplog.text.count("KEY_VALUES_MISMATCH") == 1
        Path(issued.certificate_file).write_bytes(Path(new_key.certificate_file).read_bytes())
        tls.refresh()
    assert tls.context() is not first
    assert tls.failures == 1
    assert "certificates are loaded anew" in caplog.text
    _, theirs = meet(tls.context(), client(authority))
    assert theirs.getpeercert(True) == new_key.certificate.public_bytes(serialization.Encoding.DER)


def test_a_broker_without_tls_loads_none_of_it() -> None:
    """Its start and its memory have bounds (tests/app/test_standalone.py)."""
    program = (
        "import sys, magnetar.app.standalone, magnetar.app.listening_sockets as doors\n"
        "from magnetar.config.settings import Settings\n"
        "assert doors.broker_tls(Settings()) is None\n"
        "print([name for name in sys.modules if name.startswith(('magnetar.security.tls', 'cryptography'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_door_without_its_files_does_not_open(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="tlsKeyFilePath"):
        BrokerTls(Settings(brokerServicePortTls=0, tlsCertificateFilePath=str(tmp_path / "x")))


@pytest.mark.parametrize("fault", [UnsupportedAlgorithm("RC2"), TypeError("a key of another kind")])
def test_whatever_the_library_finds_wrong_in_a_key_store_names_the_file(
    tmp_path: Path, shown: Issued, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shown.key_store(tmp_path / "k.p12", "right")

    def load(*_: object) -> None:
        raise fault

    monkeypatch.setattr(pkcs12, "load_pkcs12", load)
    with pytest.raises(InvalidValueError, match=r"k\.p12: not a key store"):
        door(tlsEnabledWithKeyStore=True, tlsKeyStore=store, tlsKeyStorePassword="right")
