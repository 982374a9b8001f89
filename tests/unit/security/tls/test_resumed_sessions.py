"""Sessions of TLS 1.2 that are resumed: a client certificate counts no longer than it is valid."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from magnetar.runtime.clock import SystemClock
from tests.support.certificates import Authority
from tests.support.tls_door import Door, run


async def _resumed(door: Door, session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLObject, asyncio.StreamWriter]:
    """What the door says to a client that resumes ``session``."""
    reader, writer = await door.plain()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = door.trusting.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1", session=session)
    sent, answer = False, b""
    while not answer:
        try:
            client.do_handshake()
            if not sent:
                sent = bool(client.write(b"hello"))
            answer = client.read(100)
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            received = await reader.read(1 << 16)
            if not received:
                break
            incoming.write(received)
    return answer, client, writer


@pytest.mark.parametrize("later", [0, 2 * 86_400_000], ids=["valid", "expired"])
def test_a_resumed_session_ends_with_the_certificate(
    tmp_path: Path, later: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """OpenSSL remembers sessions of TLS 1.2 for two hours, and checks no certificate when one is resumed."""
    authority = Authority(tmp_path)
    shown = authority.issue("client", days=1)

    async def scenario(door: Door) -> None:
        door.trusting.maximum_version = ssl.TLSVersion.TLSv1_2
        door.trusting.load_cert_chain(shown.certificate_file, shown.key_file)
        answer, first, one = await _resumed(door, None)
        assert (answer[:1], first.session_reused) == (b"h", False)
        now = SystemClock().now_ms()
        monkeypatch.setattr(SystemClock, "now_ms", lambda _: now + later)
        answer, second, other = await _resumed(door, first.session)
        assert second.session_reused
        assert answer[:1] == (b"" if later else b"h")
        one.close()
        other.close()
        await door.empty()

    run(lambda: Door(authority, tlsTrustCertsFilePath=authority.file), scenario)
    assert ("client certificate has expired" in caplog.text) == bool(later)
