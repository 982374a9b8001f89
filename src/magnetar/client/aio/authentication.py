"""Credentials with the names of the official Python client; `ClientLogin` has the same and more by reference.

Secrets may be given as they are, since the program holds them anyway: they appear in no text of ours and cannot be
pickled. A text in the form of a reference (``env:NAME``, ``file:///path``) is one, and is read at each connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from magnetar.client.errors import NotBuiltError
from magnetar.client.login import ClientLogin
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.ctrl_c import is_ctrl_c
from magnetar.security.credentials.basic import BasicCredentials
from magnetar.security.credentials.certificate import CertificateCredentials
from magnetar.security.credentials.method import CertificateFiles, ClientCredentials
from magnetar.security.credentials.plugin import credentials_of
from magnetar.security.credentials.secret import CredentialsError, Secret
from magnetar.security.credentials.token import TokenCredentials, bearer, checked_token

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls

_PROTOCOL: Final = ("method", "data", "headers", "key_pair")
"""What credentials of an application's own class have: `ClientCredentials`."""


class Authentication:
    """Credentials by the name of the class that Pulsar has for them in Java, and its parameters."""

    def __init__(self, dynamicLibPath: str, authParamsString: str = "") -> None:  # the official names
        """``dynamicLibPath``: ``org.apache.pulsar.client.impl.auth.AuthenticationToken`` and so on, or its last part;
        no library is loaded. Raises InvalidValueError.
        """
        plugin, params = _text(dynamicLibPath, "dynamicLibPath"), _text(authParamsString, "authParamsString")
        self.credentials: ClientCredentials = credentials_of(plugin, params, "authParamsString", inline=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(***)"


class AuthenticationToken(Authentication):
    """A token, or a function that gives one whenever a connection needs it."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        """Raises InvalidValueError."""
        if callable(token):
            self.credentials = SuppliedToken(token)
        else:
            self.credentials = TokenCredentials(_secret(_text(token, "token").removeprefix("token:"), "token"))


class AuthenticationTLS(Authentication):
    """The certificate that TLS presents."""

    def __init__(self, certificate_path: str, private_key_path: str) -> None:
        """Both are PEM files. Raises InvalidValueError."""
        pair = CertificateFiles(
            _text(certificate_path, "certificate_path"), _text(private_key_path, "private_key_path")
        )
        self.credentials = CertificateCredentials(pair)


class AuthenticationBasic(Authentication):
    """A user and a password."""

    def __init__(
        self,
        username: str | None = None,
        password: str | None = None,
        method: str = "basic",
        auth_params_string: str | None = None,
    ) -> None:
        """``auth_params_string``: the others as JSON, which then do not count. Raises InvalidValueError."""
        if auth_params_string is not None:
            params = _text(auth_params_string, "auth_params_string")
            self.credentials = credentials_of("AuthenticationBasic", params, "auth_params_string", inline=True)
        else:
            secret = _secret(_text(password, "password"), "password")
            self.credentials = BasicCredentials(_text(username, "username"), secret, _text(method, "method"))


class AuthenticationOauth2(Authentication):
    """A client id and its secret, for which an issuer gives tokens."""

    def __init__(self, auth_params_string: str) -> None:
        """``auth_params_string``: JSON with ``issuer_url``, ``private_key`` (a file, or ``data:``), ``audience``,
        ``scope``. Raises InvalidValueError."""
        params = _text(auth_params_string, "auth_params_string")
        self.credentials = credentials_of("AuthenticationOAuth2", params, "auth_params_string", inline=True)


class AuthenticationAthenz(Authentication):
    """There is no login by Athenz here."""

    def __init__(self, auth_params_string: str) -> None:
        """Raises NotBuiltError."""
        raise NotBuiltError("AuthenticationAthenz: there is no login by Athenz; use a token, TLS or OAuth 2")


class SuppliedToken:
    """A token that a function gives whenever a connection needs it; the function runs in a thread of its own."""

    method: ClassVar[str | None] = "token"
    key_pair: ClassVar[CertificateFiles | None] = None

    def __init__(self, supply: Callable[[], str]) -> None:
        self._supply = supply

    def data(self, stale: bytes | None = None) -> bytes:
        """Return the token. Raises CredentialsError if the function fails, without what it says."""
        try:
            token = self._supply()
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            raise CredentialsError(f"the function that gives the token raised {type(error).__name__}") from None
        if not isinstance(token, str):
            raise CredentialsError(f"the function that gives the token returned {type(token).__name__}, not a text")
        return checked_token(token.removeprefix("token:"), "what the function gave").encode()

    def headers(self) -> Mapping[str, str]:
        """Return the headers of an HTTP request. Raises as `data`."""
        return bearer(self.data())

    def __reduce__(self) -> str:
        raise InvalidValueError("a function that gives tokens does not leave its process; give a reference")

    def __str__(self) -> str:
        return "the token that a function gives"


def credentials_from(given: object) -> ClientCredentials:
    """Return the credentials of what an application hands to a client. Raises InvalidValueError."""
    if isinstance(given, ClientLogin | Authentication):
        return given.credentials
    if all(hasattr(given, name) for name in _PROTOCOL):
        found: ClientCredentials = given  # type: ignore[assignment]  # its attributes were looked at
        return found
    raise InvalidValueError(
        f"authentication is {type(given).__name__}; give ClientLogin, AuthenticationToken and its like, or an object "
        f"with {', '.join(_PROTOCOL)}"
    )


def _text(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise InvalidValueError(f"{name} is a text, and not {type(given).__name__}")
    return given


def _secret(text: str, name: str) -> Secret:
    if not text:
        raise InvalidValueError(f"{name} is empty")
    if text.startswith("command:"):
        return Secret.given(text)  # a program is started only where a login says so by reference
    return Secret.of_reference(text, name) or Secret.given(text)


def tls_from(
    given: object, *, trust: str | None, insecure: bool, host_name: bool, key: str | None, certificate: str | None
) -> ClientTls | None:
    """Return the files and checks of TLS: those of a `ClientLogin`, or those that a client was given beside it.

    Raises InvalidValueError if both say something.
    """
    of_login = given.tls if isinstance(given, ClientLogin) else None
    if trust is None and key is None and certificate is None and not insecure and host_name:
        return of_login
    if of_login is not None:
        raise InvalidValueError("TLS is described by the ClientLogin already; leave the tls_ parameters out")
    if key is not None and certificate is None:
        raise InvalidValueError("tls_private_key_file_path needs tls_certificate_file_path")
    from magnetar.security.tls.client_tls import ClientTls

    return ClientTls(
        trust_file=trust or "", certificate_file=certificate or "", key_file=key or "",
        verify_host_name=host_name, allow_insecure=insecure,
    )  # fmt: skip
