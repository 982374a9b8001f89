"""Whom a proxy may speak for (rule 12.13)."""

from __future__ import annotations

from collections.abc import Collection

from magnetar.model.errors import AuthenticationError
from magnetar.security.tokens.claims import checked_role


def refusal(role: str, original: str | None, proxy_roles: Collection[str], *, may_be_same: bool) -> str | None:
    """Return why ``role`` may not speak for ``original``, ``None`` if it may.

    ``may_be_same``: whether a peer that is no proxy may name itself, as over REST.
    """
    if role in proxy_roles:
        if not original or not original.strip():
            return "a proxy has to name an original principal"
        if original != original.strip():
            return "the original principal begins or ends with white space"
        try:
            checked_role(original, "the original principal")
        except AuthenticationError as error:
            return str(error)
        return "the original principal is a proxy itself" if original in proxy_roles else None
    if original and not (may_be_same and original == role):
        return "an original principal is named by a role that is not in proxyRoles"
    return None
