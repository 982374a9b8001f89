"""Which versions of TLS are offered: Java's names to the bounds and gaps of OpenSSL.

What is older than TLS 1.2 is broken (RFC 8996) and never offered, whatever a configuration names.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.config.properties import words
from magnetar.config.tls_settings import PROTOCOLS
from magnetar.model.errors import InvalidValueError

OFFERED: Final = ("TLSv1.2", "TLSv1.3")
"""In ascending order."""


class ProtocolVersions(NamedTuple):
    """The lowest and the highest version that is offered, by Java's names; there is nothing between the two."""

    lowest: str
    highest: str
    ignored: tuple[str, ...] = ()
    """Versions that the configuration names and that are not offered."""


def protocol_versions(named: str) -> ProtocolVersions:
    """Read a list of names; an empty one offers all. Raises InvalidValueError if nothing is left to offer."""
    names = words(named)
    unknown = [name for name in names if name not in PROTOCOLS]
    if unknown:
        raise InvalidValueError(f"{unknown[0]!r} is no protocol of TLS; there are {', '.join(PROTOCOLS)}")
    chosen = [name for name in OFFERED if not names or name in names]
    if not chosen:
        raise InvalidValueError(
            f"{', '.join(names)} would be all that is offered, and is not safe to use: add TLSv1.2 or TLSv1.3"
        )
    return ProtocolVersions(chosen[0], chosen[-1], tuple(name for name in names if name not in OFFERED))
