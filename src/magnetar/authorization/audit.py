"""The audit log: who was refused what, and who changed or read whose data; one JSON object for each line.

``time`` (UTC, milliseconds), ``role``, ``original`` (the principal that a proxy speaks for), ``address``, ``method``
(of authentication), ``request`` (the command or the route), ``operation``, ``object``, ``subscription``, ``outcome``
(``allowed``, ``refused``, or ``lost`` for records that could not be kept) and ``reason``. Fields without a value are
left out. A line is ASCII: whatever stands in a name is escaped by JSON, so that a name cannot forge a line, and long
texts are cut.

Any client can cause refusals, and one with a grant records of what it allows; these must not push others out of the
files that are kept. Records of one role, or of one host that has not logged in, therefore take a bounded number of
bytes in a minute, and so do those of all together: refusals few, what is allowed more. What is beyond is counted by
operation, and reported by one record for each of them when the minute is over. What superusers did is always recorded.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable, Iterable
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
ALLOWED_ASKER_BYTES: Final = 64 << 10
"""Bytes of one role's records of what it was allowed, some hundred and sixty."""
ALLOWED_BYTES: Final = 1 << 20
"""The same for all together."""
ALLOWED_ASKERS_MAX: Final = 4096
_OPERATIONS_MAX: Final = 20
"""Operations of one asker that are counted each for itself."""

Later = Callable[[float, Callable[[], None]], object]
"""Calls back after that many seconds, as ``call_later`` of the loop does."""


class AuditRecords:
    """Makes records of the authorizer's decisions; ``put`` takes each as a line. Lives on the event loop."""

    def __init__(
        self,
        clock: Clock,
        put: Callable[[bytes], None],
        later: Later | None = None,
        superuser: Callable[[Caller], bool] = lambda caller: False,
    ) -> None:
        """``later`` ends the minutes; without it they end with the next record, or by :meth:`end_window`."""
        self._clock = clock
        self._put = put
        self._later = later
        self._superuser = superuser
        self._began = 0
        self._refused = _Tally(ASKER_BYTES, REFUSED_BYTES, ASKERS_MAX)
        self._allowed = _Tally(ALLOWED_ASKER_BYTES, ALLOWED_BYTES, ALLOWED_ASKERS_MAX)

    def __call__(self, caller: Caller, access: Access, decision: Decision, request: str) -> None:
        """Record one decision, or count it if it is one too many."""
        if self._counting() and self._over():
            self.end_window()
        if decision.allowed and self._superuser(caller):
            self._put(self._record(caller, access, decision, request))
            return
        if not self._counting():
            self._began = self._clock.now_ms()
            if self._later is not None:
                self._later(WINDOW_MS / 1000, self._end_if_over)
        tally = self._allowed if decision.allowed else self._refused
        share = tally.share(caller)
        if tally.full(share):
            share.leave_out(access)
            return
        line = self._record(caller, access, decision, request)
        tally.add(share, len(line))
        self._put(line)

    def end_window(self) -> None:
        """Tell how many were counted only, and begin anew."""
        for tally, outcome, things in (
            (self._refused, "refused", "refusals"),
            (self._allowed, "allowed", "allowed requests"),
        ):
            for (role, address), share in tally.end():
                if share.more:
                    of = "" if role or address else " of others"
                    reason = f"and {share.more.total()} more {things}{of}: {share.operations()}"
                    self._put(_line(self._clock.now_ms(), role=role, address=address, outcome=outcome, reason=reason))

    def _counting(self) -> bool:
        return bool(self._refused or self._allowed)

    def _over(self) -> bool:
        return not 0 <= self._clock.now_ms() - self._began < WINDOW_MS

    def _end_if_over(self) -> None:
        # a later window may have begun meanwhile, which has a call of its own
        if self._counting() and self._over():
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


class _Tally:
    """The records of one outcome in a minute, and how much of the files they may take."""

    def __init__(self, bytes_each: int, bytes_max: int, askers_max: int) -> None:
        self._bytes_each = bytes_each
        self._bytes_max = bytes_max
        self._askers_max = askers_max
        self._bytes = 0
        self.askers: dict[tuple[str, str], _Share] = {}

    def __bool__(self) -> bool:
        return bool(self.askers)

    def share(self, caller: Caller) -> _Share:
        """That of a role or of a host."""
        # not the principal it names, nor its port: those are what the peer likes
        asker = (_cut(caller.role), "") if caller.role else ("", caller.address.rpartition(":")[0])
        found = self.askers.get(asker)
        if found is None:
            if len(self.askers) >= self._askers_max:
                asker = "", ""
            found = self.askers.setdefault(asker, _Share())
        return found

    def full(self, share: _Share) -> bool:
        """Whether there is no room for another record."""
        return share.bytes >= self._bytes_each or self._bytes >= self._bytes_max

    def add(self, share: _Share, size: int) -> None:
        """Count the bytes of a record."""
        share.bytes += size
        self._bytes += size

    def end(self) -> Iterable[tuple[tuple[str, str], _Share]]:
        """Return all shares, and begin anew."""
        ended, self.askers, self._bytes = self.askers, {}, 0
        return ended.items()


class _Share:
    """What one role or host takes in this minute."""

    __slots__ = ("bytes", "more")

    def __init__(self) -> None:
        self.bytes = 0
        self.more: Counter[str] = Counter()
        """How many records were left out, by operation."""

    def leave_out(self, access: Access) -> None:
        """Count one."""
        operation = _cut(named(access)[0])
        self.more[operation if operation in self.more or len(self.more) < _OPERATIONS_MAX else "others"] += 1

    def operations(self) -> str:
        """Return the counts in words, the largest first."""
        return ", ".join(f"{count} {operation}" for operation, count in self.more.most_common())


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
