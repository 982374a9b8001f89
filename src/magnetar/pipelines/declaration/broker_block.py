"""The block ``broker`` of a file: its address, who logs in there, and what TLS checks; secrets are references only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from magnetar.client.address import parse_service_url
from magnetar.client.login import UNKNOWN, ClientLogin
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.pipelines.declaration.document import Item
from magnetar.pipelines.declaration.secrets import is_reference, problem_of
from magnetar.security.credentials.secret import FORMS, Secret

_KEYS: Final = ("service.url", "token", "auth", "client-conf", "tls")
_CLASSES: Final = "org.apache.pulsar.client.impl.auth."
_FORMS: Final = {
    ("plugin", "params"): "",
    ("user", "password"): f"{_CLASSES}AuthenticationBasic",
    ("certificate", "key"): f"{_CLASSES}AuthenticationTls",
    ("issuer", "private-key", "audience", "scope", "trust-certs"): f"{_CLASSES}oauth2.AuthenticationOAuth2",
}
"""The keys of the block ``auth``, and the class of Pulsar that means the same."""
_PARAMETERS: Final = {
    "user": "userId",
    "password": "password",
    "certificate": "tlsCertFile",
    "key": "tlsKeyFile",
    "issuer": "issuerUrl",
    "private-key": "privateKey",
    "trust-certs": "trustCertsFilePath",
}
_OPTIONAL: Final = ("params", "audience", "scope", "trust-certs")
_SECRETS: Final = ("password", "private-key")
_FILES: Final = ("certificate", "key", "trust-certs")


def broker_block(item: Item, file: str) -> tuple[str, ClientLogin]:
    """Return the service URL, with its references, and the login; relative paths begin in the file's directory."""
    parts = item.keys(_KEYS, required=("service.url",))
    url = _service_url(parts["service.url"]) if "service.url" in parts else ""
    given: dict[str, str | bool | None] = {}
    if "token" in parts:
        given["token"] = _reference(parts["token"], "a token")
    if "client-conf" in parts:
        given["client_conf"] = _path(parts["client-conf"], file)
    if "auth" in parts:
        given |= _auth(parts["auth"], file)
    if "tls" in parts:
        given |= _tls(parts["tls"], file)
    if item.problems:
        return url, UNKNOWN
    try:
        return url, ClientLogin(**given)  # type: ignore[arg-type]  # each key has its own type
    except InvalidValueError as error:
        parts.get("auth", parts.get("token", item)).problem(str(error))
        return url, UNKNOWN


def _service_url(item: Item) -> str:
    url = item.words()
    if url and "${" not in url:
        try:
            parse_service_url(url)
        except MagnetarError as error:
            item.problem(str(error))
    elif url and (wrong := problem_of(url)):
        item.problem(wrong)
    return url


def _reference(item: Item, what: str) -> str:
    text = item.text()
    try:
        if text and Secret.of_reference(text, item.path) is None:
            wrong = problem_of(text) if is_reference(text) else None
            item.problem(wrong or f"{what} does not belong into a file; write {FORMS}, or ${{env:NAME}}")
    except InvalidValueError as error:
        item.problem(str(error))
    return text


def _path(item: Item, file: str) -> str:
    text = item.words()
    return str((Path(file).parent / text.removeprefix("file://")).resolve()) if text else ""


def _auth(item: Item, file: str) -> dict[str, str | bool | None]:
    known = [key for keys in _FORMS for key in keys]
    parts = item.keys(known)
    for keys, plugin in _FORMS.items():
        if keys[0] not in parts:
            continue
        for key in keys:
            if key not in parts and key not in _OPTIONAL:
                item.problem(f"{key!r} is missing beside {keys[0]!r}")
        for key in parts:
            if key not in keys:
                parts[key].problem(f"{key!r} has no meaning beside {keys[0]!r}")
        if not plugin:
            params = parts["params"].text() if "params" in parts else None
            return {"auth_plugin": parts["plugin"].words(), "auth_params": params}
        found = {_PARAMETERS.get(key, key): _parameter(key, parts[key], file) for key in keys if key in parts}
        return {"auth_plugin": plugin, "auth_params": json.dumps(found)}
    item.problem("it begins with one of the keys " + ", ".join(keys[0] for keys in _FORMS))
    return {}


def _parameter(key: str, item: Item, file: str) -> str:
    if key in _SECRETS:
        return _reference(item, "a secret")
    return _path(item, file) if key in _FILES else item.words()


def _tls(item: Item, file: str) -> dict[str, str | bool | None]:
    parts = item.keys(("trust-certs", "certificate", "key", "verify-host-name", "allow-insecure"))
    found: dict[str, str | bool | None] = {}
    for key, name in {"trust-certs": "trust", "certificate": "certificate", "key": "key"}.items():
        if key in parts:
            found[name] = _path(parts[key], file)
    if "verify-host-name" in parts:
        found["verify_host_name"] = parts["verify-host-name"].choice(("true", "false")) == "true"
    if "allow-insecure" in parts:
        found["allow_insecure"] = parts["allow-insecure"].choice(("false", "true")) == "true"
    return found
