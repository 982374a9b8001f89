"""Pulsar's ``authPlugin`` and ``authParams``: the classes' names, and the forms in which users write parameters.

Java, C++ and Python differ in the names (``issuerUrl``, ``issuer_url``); all are read. With ``inline`` off, a secret
that stands in the parameters is refused, and the error says how to name it instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Final

from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.basic import BasicCredentials
from magnetar.security.credentials.certificate import CertificateCredentials
from magnetar.security.credentials.issuer import WELL_KNOWN, check_issuer_url
from magnetar.security.credentials.key_file import key_reference
from magnetar.security.credentials.method import NOBODY, CertificateFiles, ClientCredentials
from magnetar.security.credentials.oauth2 import OAuth2Credentials
from magnetar.security.credentials.secret import Secret, absolute_reference
from magnetar.security.credentials.token import TokenCredentials

_NOT_SUPPORTED: Final = {
    "AuthenticationAthenz": "Athenz",
    "AuthenticationSasl": "Kerberos",
    "AuthenticationKeyStoreTls": "a key store; write its certificate and key as PEM files and use AuthenticationTls",
}

_PATHS: Final = ("tlsCertFile", "tlsKeyFile", "trustCertsFilePath", "tls_trust_certs_file_path")
"""The parameters that name files by their paths."""
_KEYS: Final = ("privateKey", "private_key")
"""Those that are paths or references."""


def absolute_params(params: str, absolute: Callable[[str], str]) -> str:
    """Return parameters as they mean the same in other directories: files by their absolute paths.

    Where they name none by a relative path, and where they cannot be read, they are returned unchanged.
    """
    text = params.strip()
    found = absolute_reference(text, absolute)
    if found != text:
        return found
    try:
        given = _pairs(text, "parameters")
    except InvalidValueError:
        return params
    meant = {name: _absolute_param(name, value, absolute) for name, value in given.items()}
    if meant == given:
        return params
    if text.startswith("{") or any("," in value for value in meant.values()):
        return json.dumps(meant)
    return ",".join(f"{name}:{value}" for name, value in meant.items())


def _absolute_param(name: str, value: str, absolute: Callable[[str], str]) -> str:
    # a text that is not the name of a file may be the key itself, which is to be refused and not kept
    if name not in _PATHS and not (name in _KEYS and ":" not in value and os.path.isfile(absolute(value))):
        return absolute_reference(value, absolute)
    path = value.removeprefix("file://")
    return value if not path or path.startswith(("/", "data:")) else absolute(path)


def credentials_of(plugin: str | None, params: str | None, what: str, *, inline: bool) -> ClientCredentials:
    """Return the credentials of a class name and its parameters; ``what`` names the parameters in errors.

    Raises InvalidValueError, which never shows the parameters.
    """
    plugin, params = (plugin or "").strip(), (params or "").strip()
    if not plugin:
        if params:
            raise InvalidValueError(f"{what} has no meaning without the class that reads it; {_known_classes()}")
        return NOBODY
    name = plugin.rpartition(".")[2]
    if name in _NOT_SUPPORTED:
        raise InvalidValueError(f"{plugin}: this client has no login by {_NOT_SUPPORTED[name]}")
    for key, read in _METHODS.items():
        if name.lower() in (key.lower(), key.lower().removeprefix("authentication")):
            return read(params, what, inline)
    raise InvalidValueError(f"{plugin!r} is not known here; {_known_classes()}")


def _known_classes() -> str:
    return f"there are {', '.join(key for key in _METHODS)} of org.apache.pulsar.client.impl.auth"


def _token(params: str, what: str, inline: bool) -> ClientCredentials:
    if params.startswith("{"):
        params = _pairs(params, what).get("token", "")
    if not params:
        raise InvalidValueError(f"{what} names no token; write file:/path or env:NAME")
    prefixed = params.startswith("token:")
    return TokenCredentials(_secret(params.removeprefix("token:"), what, inline, literal=prefixed))


def _basic(params: str, what: str, inline: bool) -> ClientCredentials:
    if not params.startswith("{"):
        found = Secret.of_reference(params, what)
        if found is not None:
            return BasicCredentials(None, found)
    given = _pairs(params, what)
    user, password = given.get("userId") or given.get("username"), given.get("password")
    if not user or not password:
        raise InvalidValueError(f'{what} must be {{"userId": "...", "password": "env:NAME"}}, or file:/path of both')
    return BasicCredentials(user, _secret(password, f"the password in {what}", inline), given.get("method", "basic"))


def _tls(params: str, what: str, inline: bool) -> ClientCredentials:
    given = _pairs(params, what)
    certificate, key = given.get("tlsCertFile"), given.get("tlsKeyFile")
    if not certificate or not key:
        raise InvalidValueError(f"{what} must be tlsCertFile:/path/cert.pem,tlsKeyFile:/path/key.pem")
    for name, path in (("tlsCertFile", certificate), ("tlsKeyFile", key)):
        if path.startswith("data:"):
            raise InvalidValueError(f"{what}: {name} must be the path of a PEM file, not the PEM itself")
    return CertificateCredentials(CertificateFiles(certificate.removeprefix("file://"), key.removeprefix("file://")))


def _oauth2(params: str, what: str, inline: bool) -> ClientCredentials:
    given = _pairs(params, what)

    def one(*names: str) -> str | None:
        return next((given[name] for name in names if given.get(name)), None)

    kind = one("type") or "client_credentials"
    by = one("tokenEndpointAuthMethod") or "client_secret_post"
    if kind != "client_credentials" or by != "client_secret_post":
        raise InvalidValueError(f"{what}: there is only type client_credentials with a client's secret")
    key, client, secret = one("privateKey", "private_key"), one("client_id", "clientId"), None
    if key is not None:
        if not inline and one("client_secret", "clientSecret") is not None:
            raise InvalidValueError(
                f"{what} has a client_secret beside its privateKey, which is never used; leave it out"
            )
        secret, client = key_reference(key, f"privateKey in {what}", inline=inline), None
    elif client is not None and (value := one("client_secret", "clientSecret")) is not None:
        secret = _secret(value, f"client_secret in {what}", inline)
    if secret is None:
        raise InvalidValueError(f"{what} names no privateKey; it is file:///path of JSON with client_id, client_secret")
    issuer = one("issuerUrl", "issuer_url")
    trust = one("trustCertsFilePath", "tls_trust_certs_file_path")
    return OAuth2Credentials(
        issuer_url=None if issuer is None else check_issuer_url(issuer, f"issuerUrl in {what}"),
        key=secret,
        client_id=client,
        audience=one("audience"),
        scope=one("scope"),
        trust=None if trust is None else trust.removeprefix("file://"),
        well_known="/" + (one("wellKnownMetadataPath") or WELL_KNOWN).lstrip("/"),
    )


def _none(params: str, what: str, inline: bool) -> ClientCredentials:
    if params and not inline:
        raise InvalidValueError(f"{what} has no meaning with AuthenticationDisabled; leave it out")
    return NOBODY


_METHODS: Final[dict[str, Callable[[str, str, bool], ClientCredentials]]] = {
    "AuthenticationToken": _token,
    "AuthenticationBasic": _basic,
    "AuthenticationTls": _tls,
    "AuthenticationOAuth2": _oauth2,
    "AuthenticationDisabled": _none,
}


def _secret(text: str, what: str, inline: bool, *, literal: bool = False) -> Secret:
    """Return the secret of a reference, or of the text itself if that is permitted; ``literal`` texts are no
    references."""
    if inline and (literal or Secret.of_reference(text, what) is None):
        return Secret.given(text)
    return Secret.parse("" if literal else text, what)


def _pairs(params: str, what: str) -> dict[str, str]:
    """Return parameters by name, from JSON or ``name:value,name:value``. Raises InvalidValueError."""
    if params.startswith("{"):
        try:
            found = json.loads(params)
        except (ValueError, RecursionError):
            raise InvalidValueError(f"{what} begins like JSON and is none") from None
        if all(isinstance(value, str | int | float) for value in found.values()):
            return {name: str(value) for name, value in found.items()}
        raise InvalidValueError(f"{what} must be JSON of names to texts")
    pairs = [part.partition(":") for part in params.split(",") if part.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}
