"""The audit log: who was refused what, and who changed or read whose data; one JSON object for each line.

``time`` (UTC, milliseconds), ``role``, ``original`` (the principal that a proxy speaks for), ``address``, ``method``
(of authentication), ``request`` (the command or the route), ``operation``, ``object``, ``subscription``, ``outcome``
(``allowed``, ``refused``, or ``lost`` for records that could not be kept) and ``reason``. Fields without a value are
left out. A line is ASCII: whatever stands in a name is escaped by JSON, so that a name cannot forge a line, and long
texts are cut.

Anybody can cause refusals, and their records must not push others out of the files that are kept. Refusals of one role,
or of one host that has not logged in, therefore take a bounded number of bytes in a minute, and so do all of them
together; what is beyond is counted, and told by one record for each of them when the minute is over.
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

WINDOW_MS: Final = 60_000
"""How long refusals are counted together, in milliseconds."""
ASKER_BYTES: Final = 16 << 10
"""Bytes of refusals of one role or host in that time, some forty; the record that passes it is the last."""
REFUSED_BYTES: Final = 128 << 10
"""The same for all together."""
ASKERS_MAX: Final = 256
"""Roles and hosts that are counted each for itself; the rest shares one count."""

Later = Callable[[float, Callable[[], None]], object]
"""Calls back after that many seconds, as ``call_later`` of the loop does."""


class AuditRecords:
    """Makes records of what the authorizer is told; ``put`` takes each as a line. Lives on the event loop."""

    def __init__(self, clock: Clock, put: Callable[[bytes], None], later: Later | None = None) -> None:
        """``later`` ends the minutes; without it they end with the next record, or by :meth:`end_window`."""
        self._clock = clock
        self._put = put
        self._later = later
        self._began = 0
        self._bytes = 0
        self._askers: dict[tuple[str, str], _Refusals] = {}

    def __call__(self, caller: Caller, access: Access, decision: Decision, request: str) -> None:
        """Record one decision, or count it if it is one refusal too many."""
        if self._askers and not 0 <= self._clock.now_ms() - self._began < WINDOW_MS:
            self.end_window()
        if decision.allowed:
            self._put(self._record(caller, access, decision, request))
            return
        refusals = self._refusals(caller)
        if refusals.bytes >= ASKER_BYTES or self._bytes >= REFUSED_BYTES:
            refusals.more += 1
            return
        line = self._record(caller, access, decision, request)
        refusals.bytes += len(line)
        self._bytes += len(line)
        self._put(line)

    def end_window(self) -> None:
        """Tell how many refusals were counted only, and begin anew."""
        askers, self._askers, self._bytes = self._askers, {}, 0
        for (role, address), refusals in askers.items():
            if refusals.more:
                reason = f"and {refusals.more} more refusals" + ("" if role or address else " of others")
                self._put(_line(self._clock.now_ms(), role=role, address=address, outcome="refused", reason=reason))

    def _refusals(self, caller: Caller) -> _Refusals:
        if not self._askers:
            self._began = self._clock.now_ms()
            if self._later is not None:
                self._later(WINDOW_MS / 1000, self._end_if_over)
        # not the principal it names, nor its port: those are what the peer likes
        asker = (_cut(caller.role), "") if caller.role else ("", caller.address.rpartition(":")[0])
        found = self._askers.get(asker)
        if found is None:
            if len(self._askers) >= ASKERS_MAX:
                asker = "", ""
            found = self._askers.setdefault(asker, _Refusals())
        return found

    def _end_if_over(self) -> None:
        # a later window may have begun meanwhile, which has a call of its own
        if self._askers and not 0 <= self._clock.now_ms() - self._began < WINDOW_MS:
            self.end_window()

    def _record(self, caller: Caller, access: Access, decision: Decision, request: str) -> bytes:
        operation, concerned, subscription = named(access)
        return _line(
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

    def lost(self, count: int) -> bytes:
        """Return the line that says how many records are missing."""
        return _line(self._clock.now_ms(), outcome="lost", reason=f"{count} records could not be kept")


class _Refusals:
    """What one role or host was refused in this window."""

    __slots__ = ("bytes", "more")

    def __init__(self) -> None:
        self.bytes = 0
        self.more = 0


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
