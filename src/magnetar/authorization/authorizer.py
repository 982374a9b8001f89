"""May this caller do that? Both roles of a proxied caller are asked, and refusals are recorded.

A broker with ``authorizationEnabled`` has one :class:`Authorizer`; without, it has none, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.grants import Grants
from magnetar.authorization.operations import TenantOperation
from magnetar.authorization.remedies import become_proxy, shown
from magnetar.authorization.rules import RoleRules
from magnetar.model.errors import AuthorizationRefusedError, NotAuthorizedError, NotFoundError

_OF_THE_TENANT_ITSELF: Final = (
    TenantOperation.GET_TENANT,
    TenantOperation.UPDATE_TENANT,
    TenantOperation.DELETE_TENANT,
)
"""Operations that Pulsar refuses with a text of their own."""
Recorder = Callable[[Caller, Access, Decision, str], None]


class Authorizer:
    """Asks the rules about the roles of callers."""

    def __init__(self, grants: Grants) -> None:
        self.grants = grants
        self.rules = RoleRules(grants)
        self.audit: Recorder = _forget
        """Keeps what :meth:`record` gets."""
        self.refusals = 0
        """How many were recorded."""

    def decide(self, caller: Caller, access: Access) -> Decision:
        """Whether the caller may do that. Of a proxy and its original principal both must be allowed (rule 12.13)."""
        if wrong := self.invalid_pair(caller):
            return wrong
        decision = self.rules.decide_any(caller.role, caller.other_roles, access)
        if decision.allowed and caller.role in self.grants.proxies:
            return self.rules.decide_any(caller.original_role, caller.other_original_roles, access)
        return decision

    def invalid_pair(self, caller: Caller) -> Decision | None:
        """Return the refusal of a role and an original principal that do not go together, else ``None``.

        A proxy names a principal that is no proxy; any other role names none, or itself. No name is an exception, also
        not the one that Pulsar's WebSocket proxy sends for itself.
        """
        role, original = caller.role, caller.original_role
        if role is not None and role in self.grants.proxies:
            if not original or not original.strip():
                return Decision(False, f"{shown(role)} is a proxy and names no original principal", "name one")
            if original in self.grants.proxies:
                return Decision(False, f"the original principal {shown(original)} is a proxy itself", "name a client")
        elif original and original.strip() and original != role:
            proxy = role or "an anonymous client"
            return Decision(
                False,
                f"{shown(proxy)} is no proxy, and names the original principal {shown(original)}",
                become_proxy(proxy),
            )
        return None

    def allows(self, caller: Caller, *accesses: Access) -> bool:
        """Whether the caller may do all of that; nothing is recorded."""
        return all(self.decide(caller, access).allowed for access in accesses)

    def superuser(self, caller: Caller) -> bool:
        """Whether the caller may do everything."""
        superusers = self.grants.superusers
        if superusers.isdisjoint((caller.role, *caller.other_roles)) or self.invalid_pair(caller) is not None:
            return False
        if caller.role not in self.grants.proxies:
            return True
        return not superusers.isdisjoint((caller.original_role, *caller.other_original_roles))

    def record(self, caller: Caller, access: Access, decision: Decision, request: str) -> None:
        """Take note of an answer that refuses, or that allows something of consequence; ``request`` is the command or
        the request that asked."""
        if not decision.allowed:
            self.refusals += 1
        self.audit(caller, access, decision, request)

    def record_refused_login(self, caller: Caller, reason: str, request: str) -> None:
        """Record a refused login, on the wire or over REST; ``caller`` has the address."""
        self.record(caller, ClusterAccess("connect"), Decision(False, reason), request)

    def require(self, caller: Caller, *accesses: Access, request: str = "", recorded: bool = False) -> None:
        """Do nothing if the caller may do all of that; ``request`` is what asks, for the audit log.

        ``recorded``: the audit log has it also when it is allowed, as soon as all of it is.
        Raises AuthorizationRefusedError with the text and the status that Pulsar's REST interface answers, or
        NotFoundError for what lies in a tenant that does not exist. The text does not tell the reason: that may name
        other roles.
        """
        decided = []
        for access in accesses:
            decision = self.decide(caller, access)
            if not decision.allowed:
                self.record(caller, access, decision, request)
                raise refusal(caller, access, decision)
            decided.append((access, decision))
        for access, decision in decided if recorded else ():
            self.record(caller, access, decision, request)


def refusal(caller: Caller, access: Access, decision: Decision) -> AuthorizationRefusedError | NotFoundError:
    """Return the error for a refused access, as Pulsar's REST interface answers it."""
    if isinstance(access, TenantAccess) and access.operation in _OF_THE_TENANT_ITSELF:
        # the same for a tenant that does not exist: a stranger does not hear which there are
        return NotAuthorizedError(
            f"Unauthorized to validateBothTenantOperationAndSuperUser for{_pair(caller)} about operation "
            f"[{access.operation.name}] "
        )
    if decision.missing:
        return NotFoundError("Tenant does not exist")
    if isinstance(access, ClusterAccess):
        return NotAuthorizedError("This operation requires super-user access")
    if isinstance(access, TenantAccess):
        if access.operation is None:
            return NotAuthorizedError("Don't have permission to administrate resources on this tenant")
        return NotAuthorizedError(
            f"Unauthorized to validateTenantOperation for{_pair(caller)} about operation "
            f"[{access.operation.name}] on tenant [{shown(access.tenant)}]"
        )
    if isinstance(access, TopicAccess):
        if decision.prefix_missing:
            return NotAuthorizedError(decision.reason)
        return NotAuthorizedError(
            f"Unauthorized to validateTopicOperation for operation [{access.operation.name}] on topic "
            f"[{shown(access.topic.fqn)}]"
        )
    if isinstance(access, NamespaceAccess):
        return AuthorizationRefusedError(
            f"Unauthorized to validateNamespaceOperation for operation [{access.operation.name}] on namespace "
            f"[{shown(access.namespace.text)}]"
        )
    return AuthorizationRefusedError(_policy_text(access))


def _policy_text(access: PolicyAccess) -> str:
    if access.topic is None:
        return (
            f"Unauthorized to validateNamespacePolicyOperation for operation [{access.operation.name}] on namespace "
            f"[{shown(access.namespace.text)}] on policy [{access.policy.name}]"
        )
    return (
        f"Unauthorized to validateTopicPolicyOperation for operation [{access.operation.name}] on topic "
        f"[{shown(access.topic.fqn)}] on policy [{access.policy.name}]"
    )


def _pair(caller: Caller) -> str:
    role, original = caller.role or "null", caller.original_role or "null"
    return f" originalPrincipal [{shown(original)}] and clientAppId [{shown(role)}]"


def _forget(caller: Caller, access: Access, decision: Decision, request: str) -> None: ...
