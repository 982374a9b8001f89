"""One cluster as a client reaches it: its addresses, credentials and TLS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magnetar.client.address import Address, ServiceUrl
from magnetar.client.rest import Rest
from magnetar.security.asker_words import TOOL_WORDS, AskerWords
from magnetar.security.credentials.method import ClientCredentials

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls


@dataclass(frozen=True, slots=True, eq=False)
class Service:
    """What a client connects to at a time; another one takes its place when the client moves."""

    url: ServiceUrl
    credentials: ClientCredentials
    tls: ClientTls | None
    words: AskerWords = TOOL_WORDS
    """How who gave them names them."""

    def rest(self, address: Address, seconds: float) -> Rest:
        """Return the REST interface at an address, which may take so long to answer."""
        scheme = "https" if address.tls else "http"
        return Rest(f"{scheme}://{address}", self.credentials, self.tls, seconds, self.words)
