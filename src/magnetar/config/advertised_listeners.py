"""``advertisedListeners``: the addresses under which clients of several networks reach the broker (PIP-61).

The setting holds ``name:scheme://host:port`` entries, separated by commas; a listener may have one address of each
scheme. A client names the listener of its network in LOOKUP and gets the addresses of that one. A client that names
none gets those of the internal listener, or of the first that has an address of the scheme (rules 2.3, 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from magnetar.model.errors import InvalidValueError

SCHEMES: Final = ("pulsar", "pulsar+ssl", "http", "https")
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class AdvertisedListeners:
    """The listeners of one broker by name, each with its addresses by scheme."""

    addresses: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    internal: str = ""
    """The name of the listener of clients that name none; empty if there is no listener."""

    def default(self, scheme: str) -> str:
        """The address for clients that name no listener; empty: none is advertised for the scheme."""
        first = self.addresses.get(self.internal, {}).get(scheme)
        return first or next((found[scheme] for found in self.addresses.values() if scheme in found), "")


def advertised_listeners(listed: str, internal: str) -> AdvertisedListeners:
    """Parse the settings ``advertisedListeners`` and ``internalListenerName``.

    Raises InvalidValueError, whose text begins with the setting's name.
    """
    addresses: dict[str, dict[str, str]] = {}
    taken: dict[tuple[str, int], str] = {}
    for entry in filter(None, (part.strip() for part in listed.split(","))):
        name, scheme, url, place = _parsed(entry)
        of_name = addresses.setdefault(name, {})
        if scheme in of_name:
            raise _refused(entry, f"the listener {name} has two addresses with {scheme}")
        if taken.setdefault(place, name) != name:
            raise _refused(entry, f"the listener {taken[place]} has the same host and port")
        of_name[scheme] = url
    if internal and internal not in addresses:
        known = ", ".join(addresses) or "none: it is empty"
        raise InvalidValueError(
            f"internalListenerName: {internal[:_SHOWN]!r} is no listener of advertisedListeners, which has {known}"
        )
    return AdvertisedListeners(addresses, internal or next(iter(addresses), ""))


def _parsed(entry: str) -> tuple[str, str, str, tuple[str, int]]:
    """Name, scheme, address, host and port of one entry."""
    name, colon, url = entry.partition(":")
    name, url = name.strip(), url.strip()
    if not name or not colon or name in SCHEMES:
        raise _refused(entry, "a listener's name comes first")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _refused(entry, str(error)) from None
    if parts.scheme not in SCHEMES or not host or not port or parts.path not in ("", "/") or parts.query:
        raise _refused(entry, "expected name:scheme://host:port with pulsar, pulsar+ssl, http or https")
    return name, parts.scheme, url.rstrip("/"), (host, port)


def _refused(entry: str, why: str) -> InvalidValueError:
    return InvalidValueError(f"advertisedListeners: {entry[:_SHOWN]!r} is not accepted: {why}")
