"""What clients say when they connect, and when a broker asks for credentials again (rules 1.2, 12.6); and why it came
to nothing: what a port answers shows what it is for.
"""

from __future__ import annotations

from typing import Final

from magnetar import __version__
from magnetar.client.address import Address
from magnetar.client.errors import ClientError, ConnectionLostError, TlsError, WrongPortError
from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.runtime.connections.failure_words import why_failed
from magnetar.security.asker_words import TOOL_WORDS, AskerWords

CLIENT_VERSION: Final = f"magnetar-client-{__version__}"
PROTOCOL_VERSION: Final = 21
MAX_FRAME_SIZE: Final = 1 << 28
"""Brokers may be configured for messages larger than 5 MiB, and the decoder must know before the broker says so."""
_REFRESH: Final = b"PulsarAuthRefresh"
"""The challenge that says: what you have shown has expired (rule 12.6)."""
_TLS_ALERT: Final = b"\x15\x03"
_HTTP_ANSWERS: Final = (b"http/", b"<!doctype", b"<html")
"""How servers of HTTP begin: some send a page without a header where they cannot read the request."""
_FEATURES: Final = c.FeatureFlags(
    supports_auth_refresh=True,
    supports_broker_entry_metadata=True,
    supports_partial_producer=False,
    supports_topic_watchers=False,
    supports_get_partitioned_metadata_without_auto_creation=True,
)


def connect_command(method: str | None, shown: bytes | None, proxy_to: str | None) -> c.CommandConnect:
    """Return CONNECT; ``proxy_to`` names the broker, if the address is a proxy's."""
    return c.CommandConnect(
        CLIENT_VERSION,
        PROTOCOL_VERSION,
        auth_method_name=method,
        auth_data=shown,
        proxy_to_broker_url=proxy_to,
        feature_flags=_FEATURES,
    )


def says_expired(asked: c.CommandAuthChallenge) -> bool:
    """Whether the broker asks because the credentials that it was shown have expired."""
    return asked.challenge is not None and asked.challenge.auth_data == _REFRESH


def auth_response(method: str | None, shown: bytes | None) -> c.CommandAuthResponse:
    """Return the answer to a challenge."""
    return c.CommandAuthResponse(CLIENT_VERSION, c.AuthData(method, shown), PROTOCOL_VERSION)


def unreachable(address: Address, error: OSError, words: AskerWords = TOOL_WORDS) -> ClientError:
    """Return what to raise about an address where no connection could be made."""
    if address.tls:
        from magnetar.security.tls import client_tls

        where = f"the broker at {address}"
        if client_tls.is_ended(error):
            return ConnectionLostError(client_tls.ended(where))
        said = client_tls.reason(error, where, words)
        if said is not None:
            return TlsError(said)
    return ConnectionLostError(
        f"cannot connect to the broker at {address}: {why_failed(error)}; is it running, is the address right?"
    )


def broken(
    address: Address, error: BaseException | None, words: AskerWords = TOOL_WORDS, *, greeted: bool
) -> ClientError:
    """Return what to raise about a connection that ended; ``error`` is None if the broker closed it.

    With TLS 1.3 a broker refuses the client's certificate this late.
    """
    where = f"the broker at {address}"
    if error is not None and address.tls and not greeted:
        from magnetar.security.tls import client_tls

        if client_tls.is_ended(error):
            return ConnectionLostError(f"{client_tls.ended_early(where, words)} ({why_failed(error)})")
        said = client_tls.reason(error, where, words)
        if said is not None:
            return TlsError(said)
    if error is not None:
        return ConnectionLostError(f"the connection to {where} broke: {why_failed(error)}")
    if greeted:
        return ConnectionLostError(f"{where} closed the connection")
    step = "is it a broker's port?" if address.tls else "if it is a TLS port, write pulsar+ssl://"
    return ConnectionLostError(f"{where} closed the connection before it answered; {step}")


def no_pulsar(address: Address, data: bytes, error: ProtocolError, *, greeted: bool) -> ConnectionLostError:
    """Return what to raise about bytes that are no Pulsar protocol; of a first answer it says what they are."""
    where = f"the broker at {address}"
    if not greeted and data[:16].lstrip().lower().startswith(_HTTP_ANSWERS):
        secured, tls = ("https", "Tls") if address.tls else ("http", "")
        return WrongPortError(
            f"{where} answers as HTTP does: this is an HTTP port; write {secured}://, or the port of brokerServicePort"
            f"{tls} (by default {6651 if tls else 6650})"
        )
    if not greeted and not address.tls and data.startswith(_TLS_ALERT):
        return WrongPortError(f"{where} answers as TLS does: this is a TLS port; write pulsar+ssl://")
    return ConnectionLostError(f"{where} sent what is no Pulsar protocol: {error}")
