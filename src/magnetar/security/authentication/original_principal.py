"""Whom a proxy may speak for (rule 12.13)."""

from __future__ import annotations

from collections.abc import Collection


def refusal(role: str, original: str | None, proxy_roles: Collection[str], *, may_be_same: bool) -> str | None:
    """Return why ``role`` may not speak for ``original``, ``None`` if it may.

    ``may_be_same``: whether a peer that is no proxy may name itself, as over REST.
    """
    if role in proxy_roles:
        if not original:
            return "a proxy has to name an original principal"
        return "the original principal is a proxy itself" if original in proxy_roles else None
    if original and not (may_be_same and original == role):
        return "an original principal is named by a role that is not in proxyRoles"
    return None
