"""Sends every case of the permission table to a running broker, and compares what it does with what the table says."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from magnetar.authorization.permission_table.matrix import BODY, ROLES, MatrixCase, ScratchTenant, cases
from magnetar.cli.permissions.wire_requests import command_of
from magnetar.client.address import parse_service_url
from magnetar.client.connection import Connection
from magnetar.client.errors import ClientError, RefusedError
from magnetar.model.errors import InvalidValueError, NotAvailableError, ServerError
from magnetar.runtime.clock import SystemClock, steady_seconds
from magnetar.security.credentials.certificate import presenting
from magnetar.security.credentials.method import NOBODY, ClientCredentials
from magnetar.security.credentials.secret import Secret
from magnetar.security.credentials.token import TokenCredentials

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls
    from magnetar.security.tokens.keys import SigningKey

REFUSALS: Final = (
    "Unauthorized to ", "This operation requires super-user access", "Don't have permission to administrate",
    "Authentication required", "Failed to create consumer - The subscription name", "Need to authenticate",
)  # fmt: skip
"""What the reasons of refusals begin with; other reasons mean that the request was let in."""
_COORDINATORS: Final = "is not a super user"
_SECONDS: Final = 10.0
_TOKEN_SECONDS: Final = 3600


@dataclass(slots=True)
class SelfTestResult:
    """What came of a run."""

    cases: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)
    cells: dict[str, dict[str, str]] = field(default_factory=dict)
    """By row and role: ``+`` let in, ``-`` refused, ``!`` other than the table says for one kind of topic."""

    def add(self, case: MatrixCase, allowed: bool, said: str) -> None:
        """Count one answer."""
        self.cases += 1
        right = allowed == case.allowed
        cells = self.cells.setdefault(case.row, {})
        if not right or cells.get(case.role) != "!":
            cells[case.role] = ("+" if allowed else "-") if right else "!"
        if not right:
            kind = f" ({case.twin})" if case.twin else ""
            did = f"let {case.role} in" if allowed else f"refused {case.role}"
            self.differences.append(f"{case.row}{kind}: the broker {did}, the table does not: {said[:200]}")

    def lines(self) -> Iterator[str]:
        """The matrix: one line for each row, one column for each role."""
        yield " ".join(ROLES)
        for row, cells in self.cells.items():
            marks = " ".join(cells.get(role, " ").ljust(len(role)) for role in ROLES)
            yield f"{marks} {row}"


class SelfTest:
    """One run; the logins are those of the roles, and none is kept longer than that."""

    def __init__(
        self,
        scratch: ScratchTenant,
        logins: Mapping[str, ClientCredentials],
        tls: ClientTls | None,
        admin_url: str,
        service_url: str,
        seconds: float,
    ) -> None:
        """``logins``: of every role but ``none``; ``tls``: of all connections."""
        self._scratch = scratch
        self._logins = logins
        self._tls = tls
        self._address = parse_service_url(service_url)[0]
        self._admin = urlsplit(admin_url)
        self._deadline = steady_seconds() + seconds
        self._http: dict[str, http.client.HTTPConnection] = {}
        self._wire: dict[str, Connection] = {}

    def run(self) -> SelfTestResult:
        """Send all cases. Raises NotAvailableError when time is up, and what a broken connection raises."""
        begun, result = steady_seconds(), SelfTestResult()
        try:
            for case in _by_role(cases(self._scratch)):
                if steady_seconds() > self._deadline:
                    raise NotAvailableError(f"time is up after {result.cases} cases; give more with --seconds")
                allowed, said = self._over_http(case) if case.command is None else self._over_wire(case)
                result.add(case, allowed, said)
        finally:
            for http_connection in self._http.values():
                http_connection.close()
            for connection in self._wire.values():
                connection.close()
        result.seconds = steady_seconds() - begun
        return result

    def _over_http(self, case: MatrixCase) -> tuple[bool, str]:
        assert case.request is not None
        method, path = case.request
        credentials = self._logins.get(case.role, NOBODY)
        headers = {"content-type": "application/json", "accept": "application/json", **credentials.headers()}
        body = json.dumps(BODY) if method in ("PUT", "POST", "PATCH") else None
        connection = self._http.get(case.role) or self._http.setdefault(case.role, self._connected(credentials))
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except TimeoutError:
            # it may hang in this one request only, as Apache Pulsar does in some
            self._http.pop(case.role).close()
            return not case.allowed, f"no answer within {_SECONDS:g} s"
        except (OSError, http.client.HTTPException) as error:
            raise NotAvailableError(f"{method} {path}: no answer: {error}") from error
        reason = _reason(content)
        return not _refused(method, answer.status, reason), f"{answer.status} {reason}"

    def _connected(self, credentials: ClientCredentials) -> http.client.HTTPConnection:
        host, port = self._admin.hostname or "", self._admin.port
        if self._admin.scheme != "https":
            return http.client.HTTPConnection(host, port or 8080, timeout=_SECONDS)
        from magnetar.security.tls.client_tls import ClientTls

        context = presenting(self._tls or ClientTls(), credentials).context()
        return http.client.HTTPSConnection(host, port or 8443, timeout=_SECONDS, context=context)

    def _over_wire(self, case: MatrixCase) -> tuple[bool, str]:
        assert case.command is not None and case.topic is not None
        try:
            connection = self._wire.get(case.role)
            if connection is None or connection.closed:
                credentials = self._logins.get(case.role, NOBODY)
                connection = Connection(self._address, timeout=_SECONDS, credentials=credentials, tls=self._tls)
                self._wire[case.role] = connection
        except ClientError as error:
            if case.role == "none":
                return False, str(error)
            raise
        try:
            answer = connection.request(command_of(case.command, connection, case.topic), object, case.row)
        except RefusedError as refused:
            return refused.code not in (ServerError.AuthorizationError, ServerError.AuthenticationError), str(refused)
        except ClientError as error:
            # it may hang in this one command, or close the connection for it, as Apache Pulsar does for some
            self._wire.pop(case.role).close()
            return not case.allowed, str(error)
        code, said = getattr(answer, "error", None), str(getattr(answer, "message", None) or "")
        return code != ServerError.AuthorizationError and _COORDINATORS not in said, f"{answer}"


def _by_role(all_cases: Iterable[MatrixCase]) -> list[MatrixCase]:
    """Those of HTTP first, and each role's together, so that its connection is not idle for long."""
    return sorted(all_cases, key=lambda case: (case.command is not None, ROLES.index(case.role)))


def _refused(method: str, status: int, reason: str) -> bool:
    """Whether an answer refuses, as magnetar does and as Apache Pulsar does."""
    # HEAD has no body to look at, and Apache Pulsar gives no reason to those who have not logged in
    if status in (401, 403) and (method == "HEAD" or (status == 401 and not reason)):
        return True
    return status in (401, 403, 404) and reason.startswith(REFUSALS)


def _reason(content: bytes) -> str:
    try:
        found = json.loads(content)
    except ValueError:
        return ""
    # Apache Pulsar's pages of errors have a message
    return str(found.get("reason") or found.get("message") or "") if isinstance(found, dict) else ""


def signing_key(secret: str | None, private: str | None, algorithm: str) -> SigningKey:
    """What the tokens of the run are signed with: the broker's secret, or the private half of its public key.

    Raises InvalidValueError, OSError.
    """
    from magnetar.cli.tokens.input import secret as read_secret
    from magnetar.security.tokens.keys import private_key
    from magnetar.security.tokens.signer import secret_signer

    if (secret is None) == (private is None):
        raise InvalidValueError(
            "expected --secret-key (tokenSecretKey) or --private-key (of tokenPublicKey), one of them"
        )
    if private is not None:
        return private_key(read_secret(private, "--private-key"), algorithm, "--private-key")
    return secret_signer(read_secret(secret or "", "--secret-key"), algorithm, "--secret-key")


def minted(scratch: ScratchTenant, signer: SigningKey, superuser: ClientCredentials) -> dict[str, ClientCredentials]:
    """Logins of all roles but ``none``: tokens that hold as long as the run, and the given one of the superuser."""
    from magnetar.security.tokens.signer import sign

    expires = int(SystemClock().now_ms() / 1000) + _TOKEN_SECONDS
    tokens = {
        role: TokenCredentials(Secret.given(sign({"sub": name, "exp": expires}, signer, ())))
        for role, name in scratch.roles.items()
        if role != "superuser"
    }
    return {**tokens, "superuser": superuser}
