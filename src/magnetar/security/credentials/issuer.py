"""The two requests to an issuer of tokens: where its token endpoint is, and a token for a client (RFC 6749, 4.4).

The client's secret goes out only after the certificate and the host name were checked, to https addresses (plain http
only on this machine), and no redirect is followed.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import math
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.exchange import Deadline, handlers
from magnetar.security.credentials.key_file import ClientKey
from magnetar.security.credentials.secret import CredentialsDelayedError, CredentialsError
from magnetar.security.credentials.token import checked_token

WELL_KNOWN: Final = "/.well-known/openid-configuration"
PATIENCE: Final = 15.0
"""Seconds for all requests that one token takes."""
_ANSWER_MAX: Final = 1 << 20
_LIFE_MAX: Final = 366 * 86400.0
_LIFE_UNKNOWN: Final = 60.0
_ERROR_CODE: Final = re.compile(r"[\w.-]{1,60}")


class IssuedToken(NamedTuple):
    """A token with the seconds that it lives."""

    token: str
    seconds: float

    def __repr__(self) -> str:
        return f"IssuedToken(***, {self.seconds})"


def check_issuer_url(url: str, what: str) -> str:
    """Return the address without a slash at its end. InvalidValueError if secrets must not be sent there."""
    parts = urlsplit(url)
    try:
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host = ""
    if parts.scheme not in ("https", "http") or not host or parts.username is not None:
        raise InvalidValueError(f"{what} must be an address as https://issuer.example.com")
    if parts.scheme == "http" and not _on_this_machine(host):
        raise InvalidValueError(f"{what} is {url}: a client's secret is sent over https only")
    return url.rstrip("/")


def _on_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def token_endpoint(issuer_url: str, trust: str | None, deadline: Deadline, well_known: str = WELL_KNOWN) -> str:
    """Ask an issuer for the address at which it gives tokens. Raises CredentialsError, CredentialsDelayedError."""
    answer = ask(urllib.request.Request(issuer_url + well_known), issuer_url, trust, deadline)
    endpoint = answer.get("token_endpoint")
    if not isinstance(endpoint, str):
        raise CredentialsError(f"the issuer {issuer_url} names no token_endpoint")
    try:
        return check_issuer_url(endpoint, f"the token_endpoint of {issuer_url}")
    except InvalidValueError as error:
        raise CredentialsError(str(error)) from None


def request_token(
    endpoint: str, key: ClientKey, more: Mapping[str, str], trust: str | None, deadline: Deadline
) -> IssuedToken:
    """Ask for a token of a client. Raises CredentialsError, CredentialsDelayedError."""
    form = {
        "grant_type": "client_credentials",
        "client_id": key.client_id,
        "client_secret": key.client_secret,
        **more,
    }
    answer = ask(urllib.request.Request(endpoint, urlencode(form).encode(), method="POST"), endpoint, trust, deadline)
    token, seconds = answer.get("access_token"), answer.get("expires_in", _LIFE_UNKNOWN)
    if not isinstance(token, str):
        raise CredentialsError(f"{endpoint} gave no access_token")
    try:
        life = float(seconds)
    except (TypeError, ValueError, OverflowError):  # a whole number may be too large for a float
        life = _LIFE_UNKNOWN
    if math.isnan(life):
        life = _LIFE_UNKNOWN
    life = min(max(life, 0.0), _LIFE_MAX)
    return IssuedToken(checked_token(token, f"the access_token of {endpoint}"), life)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are errors: they would carry the secret to who knows whom."""

    def redirect_request(self, *_: Any) -> None:
        return None


def ask(request: urllib.request.Request, where: str, trust: str | None, deadline: Deadline) -> dict[str, Any]:
    """Return the JSON object that a request is answered with; blocks until then or until the deadline.

    ``trust``: a file with the certificates that are trusted, None for the system's. Raises CredentialsError,
    CredentialsDelayedError.
    """
    request.add_header("accept", "application/json")
    try:
        context = ssl.create_default_context(cafile=trust)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"the trusted certificates in {trust} cannot be read: {error.strerror}") from None
    # the default of Python 3.13 refuses authorities that Python 3.12, OpenSSL and the official clients trust
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # A proxy for plain http would see the secret; https goes through it as a tunnel.
    proxies = [urllib.request.ProxyHandler({})] if request.type == "http" else []
    opener = urllib.request.build_opener(_NoRedirect, *handlers(deadline, context), *proxies)
    try:
        with opener.open(request) as answer:
            data = _content(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            raise _refusal(refused, where) from None
    except http.client.HTTPException as error:
        # its text repeats what was received
        raise CredentialsDelayedError(f"{where} does not answer in HTTP: {type(error).__name__}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise CredentialsError(f"the certificate of {where} is not trusted: {reason.verify_message}") from None
        raise CredentialsDelayedError(f"{where} does not answer: {reason}") from None
    if len(data) > _ANSWER_MAX:
        raise CredentialsError(f"{where} answered with more than {_ANSWER_MAX} bytes")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CredentialsError(f"{where} answered with what is no JSON object; is it an issuer of OpenID Connect?")
    return found


def _content(answer: Any) -> bytes:
    """Read an answer up to a byte too many. Raises TimeoutError."""
    data = b""
    while len(data) <= _ANSWER_MAX and (piece := answer.read1(_ANSWER_MAX + 1 - len(data))):
        data += piece
    return data


def _refusal(refused: urllib.error.HTTPError, where: str) -> CredentialsError:
    """Return the error with the issuer's code; its free text might repeat what was sent."""
    try:
        code = json.loads(refused.read(_ANSWER_MAX))["error"]
        code = f", {code}" if _ERROR_CODE.fullmatch(code) else ""
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        code = ""
    kind = CredentialsDelayedError if refused.code in (408, 429) or refused.code >= 500 else CredentialsError
    return kind(f"{where} refused with HTTP status {refused.code}{code}")
