"""Names of ciphers and protocols: Java's, OpenSSL's, weak ones, nonsense."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.security.tls.cipher_suites import TLS_1_3, cipher_suites, openssl_name
from magnetar.security.tls.protocol_versions import protocol_versions
from magnetar.security.tls.server_tls import FIRST_CHOICE, Offer

NAMES = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": "DHE-RSA-AES256-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8": "ECDHE-ECDSA-AES128-CCM8",
    "TLS_DHE_RSA_WITH_AES_256_CCM": "DHE-RSA-AES256-CCM",
    "ECDHE-RSA-AES128-GCM-SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_names_of_java_become_those_of_openssl(name: str, expected: str) -> None:
    assert openssl_name(name) == expected


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl program to ask")
def test_openssl_itself_agrees_on_every_name() -> None:
    listed = subprocess.run(
        ["openssl", "ciphers", "-stdname", "ALL:COMPLEMENTOFALL"], capture_output=True, text=True, check=True
    )
    compared = 0
    for line in listed.stdout.splitlines():
        name, _, theirs, *_ = line.split()
        try:
            found = cipher_suites(name)
        except InvalidValueError:
            continue
        if found is not None and found.older:
            assert found.older == (theirs,), name
            compared += 1
    assert compared > 25


def test_a_list_is_divided_into_what_counts_and_what_is_too_weak() -> None:
    found = cipher_suites(
        "[TLS_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_3DES_EDE_CBC_SHA,"
        "SSL_RSA_WITH_RC4_128_MD5, TLS_RSA_WITH_NULL_SHA256, TLS_EMPTY_RENEGOTIATION_INFO_SCSV, TLS_AES_256_GCM_SHA384]"
    )
    assert found is not None
    assert found.latest == ("TLS_AES_256_GCM_SHA384",)
    assert found.older == ("ECDHE-RSA-AES128-GCM-SHA256",)
    assert len(found.ignored) == 4
    assert cipher_suites("") is None
    assert cipher_suites("[]") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:ALL", "no cipher suite that is known"),
        ("ALL", "no cipher suite that is known"),
        ("@SECLEVEL=0", "no cipher suite that is known"),
        ("TLS_SRP_SHA_WITH_AES_128_CBC_SHA", "no cipher suite that is known"),
        ("TLS_RSA_WITH_NULL_SHA256", "protects nothing any more"),
    ],
)
def test_what_is_no_protection_is_refused(text: str, said: str) -> None:
    """Also OpenSSL's own language of cipher strings: ``ALL`` or ``@SECLEVEL`` would open more than is written."""
    with pytest.raises(InvalidValueError, match=said):
        cipher_suites(text)


@pytest.mark.parametrize(
    ("text", "lowest", "highest", "ignored"),
    [
        ("", "TLSv1.2", "TLSv1.3", ()),
        ("[]", "TLSv1.2", "TLSv1.3", ()),
        ("TLSv1.3,TLSv1.2", "TLSv1.2", "TLSv1.3", ()),
        ("TLSv1.2,TLSv1.1,TLSv1", "TLSv1.2", "TLSv1.2", ("TLSv1.1", "TLSv1")),
        ("TLSv1.3", "TLSv1.3", "TLSv1.3", ()),
    ],
)
def test_protocols_become_bounds(text: str, lowest: str, highest: str, ignored: tuple[str, ...]) -> None:
    assert protocol_versions(text) == (lowest, highest, ignored)


@pytest.mark.parametrize(("text", "said"), [("TLSv1.1", "is not safe to use"), ("TLS", "no protocol of TLS")])
def test_protocols_that_protect_nothing_are_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        protocol_versions(text)


def test_a_version_without_a_suite_is_not_offered() -> None:
    """As in Java; and suites of TLS 1.3 cannot be chosen without OpenSSL's first choice."""
    older = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert Offer.of("", older).versions[:2] == ("TLSv1.2", "TLSv1.2")
    assert Offer.of("", FIRST_CHOICE).versions[:2] == ("TLSv1.3", "TLSv1.3")
    assert Offer.of("", f"{older},{FIRST_CHOICE}").versions[:2] == ("TLSv1.2", "TLSv1.3")
    assert Offer.of("", f"{older},TLS_AES_128_GCM_SHA256").versions[:2] == ("TLSv1.2", "TLSv1.2")
    for protocols, ciphers in (("TLSv1.3", older), ("TLSv1.2", FIRST_CHOICE), ("", "TLS_AES_128_GCM_SHA256")):
        with pytest.raises(InvalidValueError, match="no suite of"):
            Offer.of(protocols, ciphers)


def test_the_offer_is_what_the_context_has() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Offer.of("TLSv1.2", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_RC4_128_SHA").apply(context)
    names = [suite["name"] for suite in context.get_ciphers() if suite["name"] not in TLS_1_3]
    assert names == ["ECDHE-RSA-AES128-GCM-SHA256"]
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
