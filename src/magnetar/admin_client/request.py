"""From an operation and its arguments to one HTTP request, and from an answer to a typed value; no I/O.

Names are given whole (``persistent://tenant/namespace/topic``, ``tenant/namespace``) and quoted into the path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from magnetar.admin_api.operation import MetricsText, Operation, PlainText, RawMessage
from magnetar.admin_api.operations.catalogue import OPERATIONS
from magnetar.admin_api.quoted_names import subscription_part
from magnetar.admin_client.errors import AdminInvalidRequestError, AdminServerError, refusal
from magnetar.client.rest import RestAnswer, login_advice
from magnetar.model.errors import MagnetarError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.security.credentials.method import ClientCredentials

REDIRECTS_MAX: Final = 5
_BY_NAME: Final[Mapping[str, Operation]] = {one.name: one for one in OPERATIONS}
_HEADER: Final = "x-pulsar-"


@dataclass(frozen=True, slots=True)
class PeekedMessage:
    """A stored message: its bytes as they were published, which may be a whole batch, and what says the rest."""

    payload: bytes
    headers: Mapping[str, str]
    """Message-ID, publish-time, producer-name, ... in lower case, without ``X-Pulsar-``."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        found: dict[str, str] = json.loads(self.headers.get("property", "{}"))
        return found


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """One request, without the address."""

    operation: Operation
    path: str
    """With the query."""
    body: bytes | None

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.operation.method


def request_of(
    name: str, place: Mapping[str, object], query: Mapping[str, object], body: object = None
) -> AdminRequest:
    """The request of an operation. Raises AdminInvalidRequestError for names that cannot be."""
    operation = _BY_NAME[name]
    try:
        parts = _parts(operation, place)
    except MagnetarError as error:
        raise AdminInvalidRequestError(0, str(error), operation.method, operation.path, "") from error
    path = operation.path
    for part, value in parts.items():
        twice = f"/{{topic}}/subscription/{{{part}}}" in operation.path
        path = path.replace(f"{{{part}}}", subscription_part(str(value)) if twice else quote(str(value), safe=""))
    given = [(key, item) for key, value in query.items() if value is not None for item in _items(value)]
    return AdminRequest(operation, path + (f"?{urlencode(given)}" if given else ""), _body(operation, body))


def _parts(operation: Operation, place: Mapping[str, object]) -> dict[str, object]:
    """The parameters of the path: the parts of whole names, and the others as they are."""
    parts = dict(place)
    wanted = operation.path_parameters
    if "topic" in wanted:
        topic = TopicName.parse(str(place["topic"]))
        domain = "persistent" if topic.persistent else "non-persistent"
        parts |= {"domain": domain, "tenant": topic.tenant, "topic": topic.local_name}
        parts["namespace"] = topic.namespace.text.partition("/")[2]
    elif "namespace" in wanted:
        tenant, _, namespace = NamespaceName.parse(str(place["namespace"])).text.partition("/")
        parts |= {"tenant": tenant, "namespace": namespace}
    return {name: parts[name] for name in wanted}


def _items(value: object) -> Sequence[str]:
    if isinstance(value, bool):
        return [str(value).lower()]
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _body(operation: Operation, body: object) -> bytes | None:
    if body is None:
        return None
    if operation.body is PlainText:
        return str(body).encode()
    return json.dumps(to_jsonable_python(body, by_alias=True, exclude_none=True)).encode()


def value_of(request: AdminRequest, answer: RestAnswer, credentials: ClientCredentials) -> Any:
    """What an answer says, None if it says nothing. Raises AdminError."""
    operation, path = request.operation, request.path
    if answer.http_status >= 300:
        step = login_advice(answer, credentials)
        raise refusal(answer.http_status, answer.reason, request.method, path, step)
    if operation.answer is RawMessage:
        own = {key: value for key, value in answer.headers.items() if key.startswith(_HEADER)}
        headers = {key.removeprefix(_HEADER): value for key, value in own.items()}
        return PeekedMessage(answer.content, headers)
    if operation.answer is None or not answer.content.strip():
        return None
    if operation.answer in (PlainText, MetricsText):
        return answer.content.decode(errors="replace")
    try:
        return _adapter(operation.name).validate_json(answer.content)
    except ValidationError as error:
        wrong = f"the answer is not what the operation answers: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}"
        raise AdminServerError(answer.http_status, wrong, request.method, path, "") from error


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_BY_NAME[name].answer)


def redirected(
    url: str, request: AdminRequest, answer: RestAnswer, credentials: ClientCredentials, trusted: Sequence[str]
) -> str | None:
    """The address of the broker that an answer names, None if it names none; see decision 038.

    With credentials, the same host or one of ``trusted``, and never plain text after TLS. Raises AdminRedirectError.
    """
    location = answer.headers.get("location")
    if answer.http_status not in (307, 308) or location is None:
        return None
    asked, named = urlsplit(url), urlsplit(urljoin(url + request.path, location))
    shown = credentials.method is not None or credentials.key_pair is not None
    known = named.hostname == asked.hostname or (named.hostname or "") in trusted
    lowered = asked.scheme == "https" and named.scheme != "https"
    if named.scheme not in ("http", "https") or lowered or (shown and not known):
        step = f"ask that broker itself, or allow it: redirects_to=[{named.hostname!r}]"
        reason = f"{named.scheme}://{named.netloc} serves this, and may not be sent the credentials"
        raise refusal(answer.http_status, reason, request.method, request.path, "" if lowered else step)
    return f"{named.scheme}://{named.netloc}"
