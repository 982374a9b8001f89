"""From flags, the environment, a saved context and Pulsar's ``client.conf`` to one connection.

What stands beside a command counts most. What it does not say comes from one place, the first of these that is named:
``--context``, ``--client-conf``, MAGNETAR_CONTEXT, PULSAR_CLIENT_CONF, the context in use. A broker on this machine and
the token of PULSAR_TOKEN are the defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from magnetar.model.errors import InvalidValueError, NotAvailableError

if TYPE_CHECKING:
    from magnetar.client.login import ClientLogin
    from magnetar.client.lookup import Lookup
    from magnetar.client.rest import Rest
    from magnetar.contexts.context import Context

SERVICE_URL: Final = "pulsar://localhost:6650"
WEB_URL: Final = "http://localhost:8080"
CONTEXT_VARIABLE: Final = "MAGNETAR_CONTEXT"
CLIENT_CONF_VARIABLE: Final = "PULSAR_CLIENT_CONF"
TOKEN_VARIABLE: Final = "PULSAR_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFlags:
    """What a command line says about its connection; None is what it does not say.

    ``auth_params`` may hold a secret itself, as scripts for Pulsar's tools have it: it is used and never shown.
    """

    context: str | None = None
    client_conf: str | None = None
    service_url: str | None = None
    web_url: str | None = None
    token: str | None = None
    auth_plugin: str | None = None
    auth_params: str | None = None
    trust: str | None = None
    certificate: str | None = None
    key: str | None = None
    allow_insecure: bool | None = None


@dataclass(frozen=True, slots=True)
class BrokerConnection:
    """What a command connects to: addresses, and the login for them."""

    service_url: str
    """pulsar://host:port, or pulsar+ssl:// with TLS."""
    web_url: str
    """http://host:port or https://host:port, without a slash at its end."""
    login: ClientLogin
    """Credentials and TLS of both interfaces."""
    origin: str
    """Which context or file said so, for errors and ``contexts show``."""

    def rest(self, seconds: float) -> Rest:
        """Return the REST interface, which may take so long to answer."""
        return self.login.rest(self.web_url, seconds)

    def lookup(self, seconds: float) -> Lookup:
        """Return a lookup over the binary protocol, by this time-out."""
        return self.login.lookup(self.service_url, seconds)


_NAMED: Final = {
    "context": "--context",
    "client_conf": "--client-conf",
    "service_url": "the address of the broker",
    "web_url": "the HTTP address of the broker",
    "token": "--token",
    "trust": "the file of trusted certificates",
    "certificate": "the file of the certificate",
    "key": "the file of the key",
}
"""What cannot be empty, and what errors call it."""


def require_said(flag: str, value: str | None) -> None:
    """Raise InvalidValueError if a flag is there and empty.

    ``--token "$TOKEN"``, where that variable is not set, is no wish to have no token.
    """
    if value == "":
        raise InvalidValueError(f"{flag} is empty; is a variable not set?")


def connection(flags: ConnectionFlags, environment: Mapping[str, str] = os.environ) -> BrokerConnection:
    """Return the connection that a command makes. Raises InvalidValueError, which shows no secret."""
    from magnetar.contexts.context import check_urls, check_web_url

    saved, origin = _saved(flags, environment)
    service_url = flags.service_url or saved.service_url or SERVICE_URL
    web_url = flags.web_url or saved.web_url or WEB_URL
    check_urls(service_url, "")
    return BrokerConnection(service_url, check_web_url(web_url), _login(flags, saved, environment), origin)


def connection_of_both(
    flags: ConnectionFlags, service_flag: str = "--service-url", environment: Mapping[str, str] = os.environ
) -> BrokerConnection:
    """Return the connection of a command that uses both interfaces of a broker.

    With one address of the command line and the other of a context, a client.conf or the defaults, a command could ask
    one broker and change another. Raises InvalidValueError, also about such a pair.
    """
    saved, origin = _saved(flags, environment)
    service = (service_flag, flags.service_url, saved.service_url, SERVICE_URL)
    web = ("--admin-url", flags.web_url, saved.web_url, WEB_URL)
    for (flag, given, own, default), (other_flag, other_given, other_saved, _) in ((service, web), (web, service)):
        known = own or ("" if other_saved else default)
        if given and known and not other_given and _place(given) != _place(known):
            raise InvalidValueError(
                f"{flag} is not the address in {origin}: give {other_flag} as well, of the same broker"
            )
    return connection(flags, environment)


def _place(url: str) -> str:
    """The address in a form to compare: without a slash at its end, and with one name for this machine."""
    scheme, colons, rest = url.rstrip("/").partition("://")
    for name in ("localhost", "[::1]"):
        if rest == name or rest.startswith(f"{name}:"):
            rest = "127.0.0.1" + rest[len(name) :]
    return scheme + colons + rest


def _saved(flags: ConnectionFlags, environment: Mapping[str, str]) -> tuple[Context, str]:
    from magnetar.contexts.context import Context, absolute
    from magnetar.contexts.context_file import read_contexts

    for name, flag in _NAMED.items():
        require_said(flag, getattr(flags, name))
    if flags.context and flags.client_conf:
        raise InvalidValueError("give either --context or --client-conf: both say where the broker is")
    context = flags.context or ("" if flags.client_conf else environment.get(CONTEXT_VARIABLE, ""))
    file = flags.client_conf or ("" if context else environment.get(CLIENT_CONF_VARIABLE, ""))
    if context:
        return read_contexts(environment).named(context), f"context {context}"
    if file:
        path = absolute(file)
        return _of_client_conf(path), path
    contexts = read_contexts(environment)
    if contexts.current is not None:
        return contexts.named(contexts.current), f"context {contexts.current}, which is in use"
    return Context(), "the defaults"


def _of_client_conf(path: str) -> Context:
    from magnetar.contexts.context import Context
    from magnetar.security.credentials.client_conf import read_client_conf

    found = read_client_conf(path)
    return Context(service_url=found.broker_url or "", web_url=found.rest_url or "", client_conf=path)


def _login(flags: ConnectionFlags, saved: Context, environment: Mapping[str, str]) -> ClientLogin:
    from magnetar.contexts.context import absolute
    from magnetar.security.credentials.plugin import absolute_params
    from magnetar.security.credentials.secret import absolute_reference

    login = saved.login()
    if flags.auth_params and not (flags.auth_plugin or login.auth_plugin):
        raise InvalidValueError(
            "--auth-params has no meaning alone; give --auth-plugin, the class that reads it, as well"
        )
    if flags.auth_plugin or flags.auth_params or flags.token:
        login = replace(
            login,
            token=flags.token and absolute_reference(flags.token, absolute),
            auth_plugin=flags.auth_plugin or (None if flags.token else login.auth_plugin),
            auth_params=flags.auth_params and absolute_params(flags.auth_params, absolute),
            inline=True,
        )
    elif login.credentials.method is None and environment.get(TOKEN_VARIABLE):
        login = replace(login, token=f"env:{TOKEN_VARIABLE}")
    return replace(
        login,
        trust=absolute(flags.trust) or login.trust,
        certificate=absolute(flags.certificate) or login.certificate,
        key=absolute(flags.key) or login.key,
        allow_insecure=login.allow_insecure if flags.allow_insecure is None else flags.allow_insecure,
    )


def step_after(error: Exception) -> str:
    """Return what to do where an address does not answer; empty after other errors, which say it themselves."""
    from magnetar.client.rest import RestTlsError

    if not isinstance(error, NotAvailableError) or isinstance(error, RestTlsError):
        return ""
    return "is the broker running? Another address: --admin-url, or magnetar contexts"
