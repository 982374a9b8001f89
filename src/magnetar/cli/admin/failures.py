"""What went wrong, where, and what to do next, for standard error."""

from __future__ import annotations

import re
import shlex
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from magnetar.cli.admin.error_report import ErrorReport
from magnetar.client.rest import RestRefusedError, is_of_permission
from magnetar.contexts.broker_connection import step_after
from magnetar.model.errors import MagnetarError

if TYPE_CHECKING:
    from magnetar.cli.admin.call import Call

_TRUST: Final = "(tlsTrustCertsFilePath)"
_UNKNOWN_CLUSTER: Final = re.compile(r"Invalid cluster id: ([^\s;]+)")
_MISSING: Final = re.compile(r"(Tenant|Namespace|Topic's namespace) does not exist")
_OWNER: Final = re.compile(r"/admin/v2/(?:tenants|namespaces|persistent|non-persistent)/([^/]+)(?:/([^/]+))?")


def explained(error: Exception, called: str, call: Call) -> ErrorReport:
    """Explain the error of a command."""
    asked = call.asked[-1] if call.asked else None
    if isinstance(error, RestRefusedError):
        said = f"HTTP {error.http_status} {_phrase(error.http_status)}"
        request = "" if asked is None else f"{asked.method} {_where(call)}{asked.target}"
        return ErrorReport(said, error.http_status, str(error), request, _next(error, call))
    if _TRUST in str(error):
        # it runs, and answered; the flag has another name here than in client.conf
        return ErrorReport(f"{called}: {str(error).replace(_TRUST, '(--tls-trust-cert-path)')}")
    if isinstance(error, MagnetarError):
        return ErrorReport(f"{called}: {error}", following=step_after(error))
    return ErrorReport(f"{called}: {type(error).__name__}: {error}")


def _where(call: Call) -> str:
    try:
        return call.connect().web_url
    except (MagnetarError, OSError):
        return ""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _next(error: RestRefusedError, call: Call) -> str:
    if error.http_status in (401, 403) and is_of_permission(str(error)):
        if not call.asked:
            return ""
        return f"Next: magnetar permissions explain ROLE '{call.asked[-1].method} {call.asked[-1].path}'"
    if error.http_status == 401:
        return "Next: log in with --token, --client-conf or --context"
    unknown = _UNKNOWN_CLUSTER.match(str(error))
    if unknown is not None:
        return (
            "Next: magnetar admin clusters list shows those that are known; magnetar admin clusters create "
            f"{shlex.quote(unknown[1])} --url http://HOST:8080 adds one"
        )
    if error.http_status == 404 and call.asked:
        return _missing(str(error), call.asked[-1].path)
    if 300 <= error.http_status < 400:
        return "Next: another broker serves this; name it with --admin-url (redirects would carry credentials along)"
    return ""


def _missing(reason: str, path: str) -> str:
    """How to see the tenants or namespaces that there are, and how to make the one that is missing."""
    said, owner = _MISSING.match(reason), _OWNER.match(path)
    if said is None or owner is None:
        return ""
    tenant, namespace = unquote(owner[1]), unquote(owner[2] or "")
    if said[1] == "Tenant":
        shown, name = "tenants list", f"tenants create {shlex.quote(tenant)}"
    elif namespace:
        shown = f"namespaces list {shlex.quote(tenant)}"
        name = f"namespaces create {shlex.quote(f'{tenant}/{namespace}')}"
    else:
        return ""
    return f"Next: magnetar admin {shown} shows those that there are; magnetar admin {name} adds one"
