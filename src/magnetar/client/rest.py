"""A blocking client of a broker's REST interface, for the driver and for tasks.

It follows no redirects: they would send the credentials to wherever an answer names.
"""

from __future__ import annotations

import http.client
import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from html import unescape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from typing_extensions import override

from magnetar.client.advice import advice
from magnetar.model.errors import MagnetarError, NotAvailableError, ServerError
from magnetar.model.names import TopicName
from magnetar.runtime.connections.failure_words import why_failed
from magnetar.security.asker_words import TOOL_WORDS, AskerWords
from magnetar.security.credentials.certificate import presenting
from magnetar.security.credentials.method import NOBODY, ClientCredentials

if TYPE_CHECKING:
    import ssl

    from magnetar.security.tls.client_tls import ClientTls

PATIENCE: Final = 600.0
"""A broker may have to read a whole ledger before it answers."""
ANSWER_MAX: Final = 256 << 20
"""Bytes of the longest answer that is read."""
_REASON_MAX: Final = 64 << 10
_TITLE: Final = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_TITLE_MAX: Final = 100
_PERMISSION: Final = (
    "permission",
    "unauthorized",
    "super-user",
    "super user",
    "superuser",
    "not authorized",
    "forbidden",
)
_REQUIRED: Final = "Authentication required"
"""Pulsar's reason of 401 for a client that it does not know."""


class RestRefusedError(MagnetarError):
    """The broker answered with an error; ``http_status`` is its HTTP status."""

    def __init__(self, http_status: int, reason: str) -> None:
        super().__init__(reason)
        self.http_status = http_status


class RestTlsError(NotAvailableError):
    """TLS was not agreed; certificates or settings have to be changed before it is tried again."""


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """What a broker answered."""

    http_status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    content: bytes

    def json(self) -> Any:
        """Return the JSON value, None if the answer is empty. Raises ValueError if it is no JSON."""
        try:
            return json.loads(self.content) if self.content else None
        except RecursionError:
            raise ValueError("too many levels inside each other") from None

    @property
    def reason(self) -> str:
        """Why it refused, in its own words; of a page of HTML, which another program or a proxy has sent, its title."""
        text = self.content.decode(errors="replace")
        if self.headers.get("content-type", "").lower().startswith("text/html"):
            title = _TITLE.search(text)
            named = f"HTTP {self.http_status}" if title is None else " ".join(unescape(title[1]).split())[:_TITLE_MAX]
            return f"a page of HTML, {named!r}; is that the HTTP port of a broker?"
        try:
            return str(json.loads(text)["reason"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return text or f"HTTP status {self.http_status}"


@dataclass(frozen=True, slots=True)
class Rest:
    """Address of a broker's REST interface, with credentials; it is pickled and sent to workers."""

    url: str
    """http://host:port or https://host:port"""
    credentials: ClientCredentials = NOBODY
    tls: ClientTls | None = None
    """Files and checks for https; None: the system's authorities, no certificate of its own."""
    seconds: float = PATIENCE
    words: AskerWords = TOOL_WORDS
    """How who asks names what they give."""

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request and return the answer's JSON, None if it is empty. Raises RestRefusedError,
        NotAvailableError, CredentialsError."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.exchange(method, path, data)
        try:
            return answer.json()
        except ValueError:
            said = f"{self.url} answers {method} {path[:200]} with what is no JSON; is it the HTTP port of a broker?"
            raise NotAvailableError(said) from None

    def exchange(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> RestAnswer:
        """Send a request, JSON if ``headers`` say nothing else, and return the whole answer. Raises RestRefusedError,
        NotAvailableError, CredentialsError."""
        answer = self.send(method, path, data, headers)
        if answer.http_status >= 300:
            step = login_advice(answer, self.credentials, self.words)
            raise RestRefusedError(answer.http_status, answer.reason if step is None else f"{answer.reason}; {step}")
        return answer

    def send(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> RestAnswer:
        """Send a request and return the answer, whatever its status. Raises NotAvailableError, CredentialsError."""
        headers = {"content-type": "application/json", **(headers or {}), **self.credentials.headers()}
        request = urllib.request.Request(self.url.rstrip("/") + path, data, headers, method=method)
        try:
            with self._opener().open(request, timeout=self.seconds) as answered:
                found = _found(answered.status, answered.headers, answered.read(ANSWER_MAX + 1))
        except urllib.error.HTTPError as refused:
            found = _found(refused.code, refused.headers, refused.read(_REASON_MAX))
        except OSError as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(cause, _UnopenedError):
                raise unavailable(self.url, cause.cause, self.words) from error
            raise unavailable(self.url, error, self.words, opened=True) from error
        except http.client.HTTPException as error:
            raise NotAvailableError(f"{self.url} does not answer as HTTP does: {type(error).__name__}") from error
        if len(found.content) > ANSWER_MAX:
            raise NotAvailableError(f"{self.url} answers {path[:200]} with more than {ANSWER_MAX} bytes")
        return found

    def _opener(self) -> urllib.request.OpenerDirector:
        if not self.url.startswith("https:"):
            # a proxy of the environment would read the credentials
            return urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
        from magnetar.security.tls.client_tls import ClientTls

        tls = presenting(self.tls or ClientTls(), self.credentials)
        return urllib.request.build_opener(_NoRedirect, _Https(tls.context()))


def _found(http_status: int, headers: Message, content: bytes) -> RestAnswer:
    return RestAnswer(http_status, {name.lower(): value for name, value in headers.items()}, content)


def is_of_permission(reason: str) -> bool:
    """Whether a refusal is about what a role may do, which 401 and 403 need not be."""
    said = reason.lower()
    return any(words in said for words in _PERMISSION)


def login_refusal(refused: RestAnswer) -> ServerError | None:
    """What a broker that speaks Pulsar's protocol would have refused with; None for other answers than 401 and 403.

    Pulsar says 401 to a client that it knows as well. A login that failed comes with a challenge, if there is one for
    the broker's methods, which TLS has not, and with these words.
    """
    if refused.http_status not in (401, 403):
        return None
    unknown = refused.headers.get("www-authenticate") is not None or refused.reason == _REQUIRED
    return ServerError.AuthenticationError if unknown else ServerError.AuthorizationError


def login_advice(refused: RestAnswer, credentials: ClientCredentials, words: AskerWords = TOOL_WORDS) -> str | None:
    """The next step after 401 or 403; None for other answers."""
    kind = login_refusal(refused)
    if kind is None or (kind is ServerError.AuthorizationError and not is_of_permission(refused.reason)):
        return None  # 403 has other reasons, too: an unknown cluster, for instance
    return advice(kind, None, credentials, words)


def unavailable(url: str, error: OSError, words: AskerWords = TOOL_WORDS, *, opened: bool = False) -> NotAvailableError:
    """Return what to raise about an address that does not answer; ``opened``: there was a connection, TLS agreed."""
    from magnetar.security.tls import client_tls

    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, http.client.RemoteDisconnected | ConnectionResetError) and not url.startswith("https:"):
        return NotAvailableError(
            f"{url} closed the connection without an answer: {cause}; is it an HTTP port? With TLS it is https://"
        )
    if not isinstance(cause, OSError):
        return NotAvailableError(f"{url} does not answer: {cause}")
    said = why_failed(cause)
    if url.startswith("https:") and client_tls.is_ended(cause):
        if not opened:
            return NotAvailableError(client_tls.ended(url))
        return NotAvailableError(
            f"{url} closed the connection before it answered: {said}; try again, and if it stays so, it may demand a "
            f"certificate of this client: give {words.certificate}"
        )
    mistaken = client_tls.reason(cause, url, words)
    return NotAvailableError(f"{url} does not answer: {said}") if mistaken is None else RestTlsError(mistaken)


class _UnopenedError(OSError):
    """A connection that failed before there was one, with TLS before the end of its handshake."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Connection(http.client.HTTPSConnection):
    @override
    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise _UnopenedError(error) from error


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._tls = context

    @override
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req, context=self._tls)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    @override
    def redirect_request(self, *_: object) -> None:
        return None


def path_of(topic: str) -> str:
    """Return the path under which a topic's own routes begin."""
    name = TopicName.parse(topic)
    domain = "persistent" if name.persistent else "non-persistent"
    return f"/admin/v2/{domain}/{name.namespace}/{quote(name.local_name, safe='')}"
