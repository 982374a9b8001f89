"""The audit log: who was refused what, and who changed or read whose data; one JSON object for each line.

``time`` (UTC, milliseconds), ``role``, ``original`` (the principal that a proxy speaks for), ``address``, ``method``
(of authentication), ``request`` (the command or the route), ``operation``, ``object``, ``subscription``, ``outcome``
(``allowed``, ``refused``, or ``lost`` for records that could not be kept) and ``reason``. Fields without a value are
left out. A line is ASCII: whatever stands in a name is escaped by JSON, so that a name cannot forge a line, and long
texts are cut.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Final

from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
)
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.runtime.clock import Clock

TEXT_MAX: Final = 500
"""Characters of one field; what is longer is cut, and ends with ``...``."""


class AuditRecords:
    """Makes records of what the authorizer is told; ``put`` takes each as a line."""

    def __init__(self, clock: Clock, put: Callable[[bytes], None]) -> None:
        self._clock = clock
        self._put = put

    def __call__(self, caller: Caller, access: Access, decision: Decision, request: str) -> None:
        """Record one decision."""
        operation, concerned, subscription = named(access)
        self._put(
            _line(
                self._clock.now_ms(),
                role=caller.role,
                original=caller.original_role,
                address=caller.address,
                method=caller.method,
                request=request,
                operation=operation,
                object=concerned,
                subscription=subscription,
                outcome="allowed" if decision.allowed else "refused",
                reason=decision.reason,
            )
        )

    def lost(self, count: int) -> bytes:
        """Return the line that says how many records are missing."""
        return _line(self._clock.now_ms(), outcome="lost", reason=f"{count} records could not be kept")


def named(access: Access) -> tuple[str, str, str | None]:
    """Operation, object and subscription of an access."""
    if isinstance(access, ClusterAccess):
        return access.what, "cluster", None
    if isinstance(access, TenantAccess):
        return "ADMINISTER" if access.operation is None else access.operation.name, access.tenant, None
    if isinstance(access, NamespaceAccess):
        return access.operation.name, access.namespace.text, None
    if isinstance(access, PolicyAccess):
        concerned = access.namespace.text if access.topic is None else access.topic.fqn
        return f"{access.operation.name} {access.policy.name}", concerned, None
    return access.operation.name, access.topic.fqn, access.subscription


def _line(now_ms: int, **fields: str | None) -> bytes:
    time = datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC).isoformat(timespec="milliseconds")
    record = {"time": time.replace("+00:00", "Z"), **{name: _cut(text) for name, text in fields.items() if text}}
    return json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "..."
