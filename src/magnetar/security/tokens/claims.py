"""What a token has to say, judged by its claims: time, audience, role. Pure; the signature was verified before."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from magnetar.model.errors import AuthenticationError, InvalidValueError
from magnetar.security.identity import Identity

ROLE_MAX: Final = 1024
"""Characters of the longest role."""
ROLES_MAX: Final = 100
"""Roles of one token, each of which may be asked about."""
_RELATIVE: Final = re.compile(r"([0-9]{1,9})([smhdwy]?)", re.ASCII)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """What is asked of the claims of a token."""

    role_claim: str = "sub"
    audience_claim: str = ""
    """Empty: audiences are not looked at."""
    audiences: frozenset[str] = frozenset()
    """One of them has to be named."""
    skew_seconds: int = 0
    required: tuple[str, ...] = ()
    """Claims that must be there."""
    several_roles: bool = False
    """Whether all roles of a list count; otherwise the first does."""


def identify(claims: Claims, rules: ClaimRules, now: float, fingerprint: str) -> Identity:
    """Return whom the claims name.

    ``now``: Unix time in seconds. ``fingerprint``: the token's. Raises AuthenticationError.
    """
    for name in rules.required:
        if claims.get(name) is None:
            raise AuthenticationError(f"the token has no claim {name}")
    issued = _time(claims, "iat") if "iat" in rules.required else None
    if issued is not None and now < issued - rules.skew_seconds:
        raise AuthenticationError("the token was issued in the future")
    until = check_time(claims, rules, now)
    if rules.audience_claim:
        _check_audience(claims.get(rules.audience_claim), rules)
    named = claims.get(rules.role_claim)
    role = role_of(named, rules.role_claim)
    others = _other_roles(role, named, rules.role_claim) if rules.several_roles and isinstance(named, list) else ()
    return Identity(role, "token", until, _named(claims, "jti"), _named(claims, "sub"), fingerprint, other_roles=others)


def check_time(claims: Claims, rules: ClaimRules, now: float) -> float | None:
    """Return until when a token counts (Unix time), ``None`` for ever. Raises AuthenticationError if it does not."""
    expires = _time(claims, "exp")
    until = None if expires is None else expires + rules.skew_seconds
    if until is not None and now >= until:
        raise AuthenticationError("the token has expired")
    begins = _time(claims, "nbf")
    if begins is not None and now < begins - rules.skew_seconds:
        raise AuthenticationError("the token does not count yet")
    return until


def seconds_of(text: str, what: str) -> int:
    """The seconds of a time such as ``90``, ``10m``, ``1h``, ``3d``, ``2w``, ``10y``. Raises InvalidValueError."""
    found = _RELATIVE.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidValueError(f"{what}: {text[:40]!r} is not accepted; expected a number with s, m, h, d, w or y")
    return int(found[1]) * _UNITS[found[2] or "s"]


def role_of(value: object, claim: str) -> str:
    """The role that a claim holds: a text, or the first of a list (rule 12.2). Raises AuthenticationError."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, str) or not value.strip():
        raise AuthenticationError(f"the token names no role in its claim {claim}")
    return checked_role(value, f"the role in the claim {claim}")


def _other_roles(first: str, listed: list[object], claim: str) -> tuple[str, ...]:
    """The roles of a list besides the first, each once. Raises AuthenticationError."""
    if len(listed) > ROLES_MAX:
        raise AuthenticationError(f"the token names more than {ROLES_MAX} roles in its claim {claim}")
    return tuple(dict.fromkeys(role for one in listed if (role := role_of([one], claim)) != first))


def checked_role(role: str, what: str) -> str:
    """Return a role that can be shown and compared. Raises AuthenticationError, which names ``what``."""
    if not role.strip() or len(role) > ROLE_MAX or not role.isprintable():
        raise AuthenticationError(f"{what} is empty, too long, or has characters that cannot be shown")
    return role


def _named(claims: Claims, name: str) -> str | None:
    """A claim as the revocation list names it: some issuers number their tokens, and write numbers."""
    value = claims.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _time(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    try:
        # a whole number in JSON may be too large for a float
        time = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:
        time = math.inf
    if not math.isfinite(time):
        raise AuthenticationError(f"the claim {name} of the token is no time")
    return time


def _check_audience(named: object, rules: ClaimRules) -> None:
    found: Collection[object] = named if isinstance(named, list) else (named,)
    if not any(isinstance(one, str) and one in rules.audiences for one in found):
        raise AuthenticationError("the token is for another audience")
