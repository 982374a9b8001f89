"""Why a role may do something or not, for people: every access that is asked for, its reason, and what would allow it.

Remedies repeat the other grants that they would replace, so only callers who may read these grants get the remedy
(:attr:`Explanation.remedy`); other callers are told whom to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from magnetar.authorization import remedies
from magnetar.authorization.access import Access, ClusterAccess
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.rules import RoleRules, named, tenant_of
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to one question."""

    role: str
    operation: str
    answers: tuple[tuple[Access, Decision], ...]
    note: str = ""
    """What is asked besides, because only the body of the request or the data tell."""

    @property
    def allowed(self) -> bool:
        """Whether all of it is allowed."""
        return all(decision.allowed for _, decision in self.answers)

    @property
    def reason(self) -> str:
        """Why: of what is refused first, or of everything that is asked."""
        refused = [decision.reason for _, decision in self.answers if not decision.allowed]
        if refused:
            return refused[0]
        reasons = dict.fromkeys(decision.reason for _, decision in self.answers)
        return "; ".join(reasons) or f"{remedies.shown(self.role)} needs nothing but a login for that"

    @property
    def remedy(self) -> str:
        """The commands that would allow it, as one line; empty if it is allowed."""
        return remedies.all_of(decision.remedy for _, decision in self.answers if not decision.allowed)

    def as_json(self, *, with_remedies: bool) -> JsonObject:
        """Return the answer of the REST interface; without remedies, whom to ask instead."""
        accesses: list[Json] = [
            {
                "access": named(access),
                "allowed": decision.allowed,
                "reason": decision.reason,
                "remedy": decision.remedy if with_remedies else "",
            }
            for access, decision in self.answers
        ]
        return {
            "role": self.role,
            "operation": self.operation,
            "allowed": self.allowed,
            "reason": self.reason,
            "remedy": self.remedy if with_remedies else self._whom_to_ask(),
            "note": self.note,
            "accesses": accesses,
        }

    def _whom_to_ask(self) -> str:
        for access, decision in self.answers:
            if not decision.allowed:
                if isinstance(access, ClusterAccess) or decision.missing:
                    return "ask a superuser"
                return f"ask an administrator of the tenant {remedies.shown(tenant_of(access))}"
        return ""


def explained(
    authorizer: Authorizer,
    caller: Caller,
    operation: str,
    accesses: Iterable[Access],
    grantable: Callable[[TopicName], bool],
    note: str = "",
) -> Explanation:
    """Ask about a caller; ``grantable``: whether permissions of a topic can be granted, which not all exist."""
    rules = RoleRules(authorizer.grants, grantable)
    answers = tuple((access, _decided(authorizer, rules, caller, access)) for access in accesses)
    return Explanation(caller.principal, operation, answers, note)


def _decided(authorizer: Authorizer, rules: RoleRules, caller: Caller, access: Access) -> Decision:
    decision = authorizer.decide(caller, access)
    if decision.allowed or authorizer.invalid_pair(caller) is not None:
        return decision
    # the first of proxy and principal that no role of its own allows it, with a remedy that can be carried out
    sides = [(caller.role, caller.other_roles)]
    if caller.original_role:
        sides.append((caller.original_role, caller.other_original_roles))
    for role, others in sides:
        found = rules.decide_any(role, others, access)
        if not found.allowed:
            return found
    return decision
