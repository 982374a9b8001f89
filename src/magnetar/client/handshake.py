"""What clients say when they connect, and when a broker asks for credentials again (rules 1.2, 12.6)."""

from __future__ import annotations

from typing import Final

from magnetar import __version__
from magnetar.protocol import commands as c

CLIENT_VERSION: Final = f"magnetar-client-{__version__}"
PROTOCOL_VERSION: Final = 21
MAX_FRAME_SIZE: Final = 1 << 28
"""Brokers may be configured for messages larger than 5 MiB, and the decoder must know before the broker says so."""
_REFRESH: Final = b"PulsarAuthRefresh"
"""The challenge that says: what you have shown has expired (rule 12.6)."""
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
