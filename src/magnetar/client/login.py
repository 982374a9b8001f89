"""How a client presents itself, and over what: what users write, checked once, with secrets as references.

This is what options of Spark, command lines and declared pipelines have in common. It is pickled to workers, which read
the secrets themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from magnetar.client.arguments.expected_argument import ExpectedArgument, check_all
from magnetar.client.arguments.kinds import TRUTH
from magnetar.client.connection import DEFAULT_TIMEOUT
from magnetar.client.lookup import Lookup
from magnetar.client.rest import PATIENCE, Rest
from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.client_conf import ConfiguredCredentials, read_client_conf
from magnetar.security.credentials.method import ClientCredentials
from magnetar.security.credentials.plugin import credentials_of
from magnetar.security.credentials.secret import Secret
from magnetar.security.credentials.token import TokenCredentials

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls


_TEXT: Final = ExpectedArgument("a text", lambda given: isinstance(given, str)).or_none()
_SECRET: Final = replace(_TEXT, secret=True)
_PARAMETERS: Final = {
    **dict.fromkeys(("auth_plugin", "client_conf", "trust", "certificate", "key"), _TEXT),
    **dict.fromkeys(("token", "auth_params"), _SECRET),
    "allow_insecure": TRUTH.or_none(),
    **dict.fromkeys(("verify_host_name", "inline"), TRUTH),
}


@dataclass(frozen=True)
class ClientLogin:
    """What a user has written; texts with secrets are refused when it is made. Raises InvalidValueError."""

    token: str | None = None
    """A reference."""
    auth_plugin: str | None = None
    auth_params: str | None = field(default=None, repr=False)
    """As Pulsar's clients read them, with references for secrets."""
    client_conf: str | None = None
    """The path of Pulsar's ``client.conf``; what is given beside it counts more."""
    trust: str | None = None
    certificate: str | None = None
    key: str | None = None
    allow_insecure: bool | None = None
    verify_host_name: bool = True
    inline: bool = False
    """Whether ``auth_params`` may hold the secret itself, as a command line's may; such a login cannot be pickled."""

    def __post_init__(self) -> None:
        check_all(_PARAMETERS, vars(self), "ClientLogin")
        if self.token is not None and self.auth_plugin is not None:
            raise InvalidValueError("give either a token or authPlugin with authParams")
        _ = self.credentials

    @cached_property
    def credentials(self) -> ClientCredentials:
        """The credentials of every connection."""
        if self.token is not None:
            return TokenCredentials(Secret.parse(self.token, "token"))
        if self.client_conf is not None and self.auth_plugin is None:
            return ConfiguredCredentials(self.client_conf)
        return credentials_of(self.auth_plugin, self.auth_params, "authParams", inline=self.inline)

    @cached_property
    def tls(self) -> ClientTls | None:
        """The files and checks of TLS; None: the machine's authorities, and no certificate of its own."""
        from magnetar.security.tls.client_tls import ClientTls

        conf = None if self.client_conf is None else read_client_conf(self.client_conf)
        pair = None if conf is None else conf.key_pair
        found = ClientTls(
            trust_file=self.trust or (conf and conf.trust) or "",
            certificate_file=self.certificate or (pair.certificate if pair else ""),
            key_file=self.key or (pair.key if pair and not self.certificate else ""),
            verify_host_name=self.verify_host_name,
            allow_insecure=bool(conf and conf.insecure) if self.allow_insecure is None else self.allow_insecure,
        )
        return None if found == ClientTls() else found

    def lookup(self, service_url: str, timeout: float = DEFAULT_TIMEOUT) -> Lookup:
        """Return a lookup for the process that calls; connections do not travel."""
        return Lookup(service_url, timeout=timeout, credentials=self.credentials, tls=self.tls)

    def rest(self, url: str, seconds: float = PATIENCE) -> Rest:
        """Return a broker's REST interface, which may take so long to answer."""
        return Rest(url, self.credentials, self.tls, seconds)


UNKNOWN: Final = ClientLogin()
"""A login without credentials."""
