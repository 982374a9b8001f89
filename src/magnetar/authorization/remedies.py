"""The command that would allow what was refused, ready to be pasted into a shell.

Granting replaces what a role had (as in Apache Pulsar), so a remedy repeats that; it therefore tells about other
roles, and is for those who may read grants, not for the one who was refused.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final

from magnetar.model.names import NamespaceName, TopicName

NAME_SHOWN: Final = 200
"""Characters of a name in reasons and remedies; longer ones are cut."""


def shown(name: str) -> str:
    """Return a name for people and log lines: what cannot be printed is escaped, and long ones are cut."""
    cut = name if len(name) <= NAME_SHOWN else name[:NAME_SHOWN] + "..."
    if cut.isprintable():
        return cut
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in cut)


def become_superuser(role: str) -> str:
    """Return what makes a role a superuser."""
    return f"add {shown(role)} to superUserRoles in broker.conf and restart the broker"


def become_proxy(role: str) -> str:
    """Return what lets a role speak for others."""
    return f"add {shown(role)} to proxyRoles in broker.conf and restart the broker"


def become_tenant_admin(tenant: str, admins: Iterable[str], role: str) -> str:
    """Return the command that adds an administrator to those that a tenant has."""
    return f"pulsar-admin tenants update {_word(tenant)} --admin-roles {_list((*admins, role))}"


def grant_on_namespace(namespace: NamespaceName, role: str, actions: Iterable[str]) -> str:
    """Return the command that grants actions in a namespace; ``actions`` are all that the role shall have."""
    return (
        f"pulsar-admin namespaces grant-permission {_word(namespace.text)} --role {_word(role)} "
        f"--actions {_list(actions)}"
    )


def grant_on_topic(topic: TopicName, role: str, actions: Iterable[str]) -> str:
    """Return the command that grants actions on a topic; ``actions`` are all that the role shall have there."""
    return f"pulsar-admin topics grant-permission {_word(topic.fqn)} --role {_word(role)} --actions {_list(actions)}"


def grant_on_subscription(namespace: NamespaceName, subscription: str, roles: Iterable[str]) -> str:
    """Return the command that reserves a subscription's name for roles; ``roles`` are all of them."""
    return (
        f"pulsar-admin namespaces grant-subscription-permission {_word(namespace.text)} "
        f"--subscription {_word(subscription)} --roles {_list(roles)}"
    )


def end_prefix_mode(namespace: NamespaceName) -> str:
    """Return the command after which subscriptions may have any name."""
    return f"pulsar-admin namespaces set-subscription-auth-mode {_word(namespace.text)} --subscription-auth-mode None"


def _word(text: str) -> str:
    return shlex.quote(shown(text))


def _list(items: Iterable[str]) -> str:
    return _word(",".join(dict.fromkeys(items)))
