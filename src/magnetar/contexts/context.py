"""One saved connection: where a broker is and how to log in, with secrets by reference only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from magnetar.model.errors import InvalidValueError

if TYPE_CHECKING:
    from magnetar.client.login import ClientLogin

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TEXT_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class Context:
    """What stands in the file under one name. An empty text is a value that the context does not say."""

    service_url: str = ""
    web_url: str = ""
    token: str = ""
    """A reference: env:NAME, file:/path or command:PROGRAM ARGUMENTS."""
    auth_plugin: str = ""
    auth_params: str = ""
    """As Pulsar's clients read them, with references where secrets would stand."""
    client_conf: str = ""
    """The path of a ``client.conf`` that holds the login and the files of TLS."""
    trust: str = ""
    certificate: str = ""
    key: str = ""
    allow_insecure: bool = False
    verify_host_name: bool = True

    def login(self) -> ClientLogin:
        """Return how to log in. Raises InvalidValueError if a secret stands where a reference must."""
        from magnetar.client.login import ClientLogin

        return ClientLogin(
            token=self.token or None,
            auth_plugin=self.auth_plugin or None,
            auth_params=self.auth_params or None,
            client_conf=self.client_conf or None,
            trust=self.trust or None,
            certificate=self.certificate or None,
            key=self.key or None,
            allow_insecure=True if self.allow_insecure else None,
            verify_host_name=self.verify_host_name,
        )

    def said(self) -> dict[str, str | bool]:
        """Return the values that differ from the defaults, by their names in the file."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }


def check_context_name(name: str) -> str:
    """Return the name of a context. Raises InvalidValueError."""
    if not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"{name[:80]!r} is no name of a context: write letters, digits, '.', '_' and '-', 64 at most"
        )
    return name


def context_of(name: str, values: Any, where: str) -> Context:
    """Return the context of one table of the file. Raises InvalidValueError naming the value and the file."""
    known = {field.name: field for field in fields(Context)}
    if not isinstance(values, dict):
        raise InvalidValueError(f"{where}: context {name} is no table")
    for key, value in values.items():
        field = known.get(key)
        if field is None:
            raise InvalidValueError(f"{where}: context {name}: {key} is not known; there are {', '.join(known)}")
        if type(value) is not type(field.default) or (isinstance(value, str) and len(value) > _TEXT_MAX):
            raise InvalidValueError(f"{where}: context {name}: {key} must be {_kind(field.default)}")
    context = Context(**values)
    try:
        check_urls(context.service_url, context.web_url)
        _ = context.login().credentials
    except InvalidValueError as error:
        raise InvalidValueError(f"{where}: context {name}: {error}") from None
    return context


def check_urls(service_url: str, web_url: str) -> None:
    """Raise InvalidValueError if one of the addresses is none; empty ones are not said."""
    if service_url:
        from magnetar.client.address import parse_service_url

        parse_service_url(service_url)
    if web_url:
        check_web_url(web_url)


def absolute(path: str | None) -> str:
    """Return a path for commands that run in other directories; empty for none. ``~`` is expanded, since the shell
    leaves it in ``file:~/…``."""
    return str(Path(os.path.expanduser(path)).absolute()) if path else ""


def found_from_elsewhere(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a context with the files of the current directory named so that commands which run in
    other directories find them. Raises OSError where the current directory is not there any more."""
    from magnetar.security.credentials.plugin import absolute_params
    from magnetar.security.credentials.secret import absolute_reference

    paths = {name: absolute(values[name]) for name in ("client_conf", "trust", "certificate", "key")}
    return {
        **values,
        **paths,
        "token": absolute_reference(values["token"], absolute),
        "auth_params": absolute_params(values["auth_params"], absolute),
    }


def check_web_url(url: str) -> str:
    """Return the address of a REST interface without a slash at its end. Raises InvalidValueError."""
    from urllib.parse import urlsplit

    from magnetar.client.address import shown_url

    shown = shown_url(url)[:200]
    example = "write http://host:8080, with TLS https://host:8443"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InvalidValueError(f"web URL {shown!r} is no address; {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidValueError(f"web URL {shown!r} is no address; {example}")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidValueError(f"the web URL holds more than a host, a port and a path; {example}")
    return url.rstrip("/")


def _kind(default: object) -> str:
    return f"a text of up to {_TEXT_MAX} characters" if isinstance(default, str) else "true or false"
