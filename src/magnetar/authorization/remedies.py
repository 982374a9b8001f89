"""The command that would allow what was refused, ready to be pasted into a shell.

Granting replaces what a role had (as in Apache Pulsar), so a remedy repeats that; it therefore shows other
roles, and is for those who may read grants, not for the one who was refused.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json

NAME_SHOWN: Final = 200
"""Characters of a name in reasons; longer ones are cut."""
_NAME_MAX: Final = 4200
"""Characters of a name in remedies: no name that a broker accepts is longer."""


def shown(name: str) -> str:
    """Return a name for people and log lines: what cannot be printed is escaped, and long ones are cut."""
    if len(name) <= NAME_SHOWN and name.isprintable():
        return name
    cut = name if len(name) <= NAME_SHOWN else name[:NAME_SHOWN] + "..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in cut)


def become_superuser(role: str) -> str:
    """Return what makes a role a superuser."""
    return f"add {shown(role)} to superUserRoles in broker.conf and restart the broker"


def become_proxy(role: str) -> str:
    """Return what lets a role speak for others."""
    return f"add {shown(role)} to proxyRoles in broker.conf and restart the broker"


def become_tenant_admin(tenant: str, admins: Iterable[Json], role: str, clusters: Iterable[Json]) -> str:
    """Return the command that adds an administrator to those that a tenant has."""
    roles = _distinct((*admins, role))
    if _listable(roles):
        return f"pulsar-admin tenants update {_word(tenant)} --admin-roles {_list(roles)}"
    return _curl(f"tenants/{tenant}", {"adminRoles": roles, "allowedClusters": [*clusters]})


def create_tenant(tenant: str, role: str, cluster: str) -> str:
    """Return the command that makes a tenant, with ``role`` as its administrator."""
    if _listable([role]):
        return f"pulsar-admin tenants create {_word(tenant)} --admin-roles {_word(role)}"
    return _curl(f"tenants/{tenant}", {"adminRoles": [role], "allowedClusters": [cluster]}, "PUT")


def create_namespace(namespace: NamespaceName) -> str:
    """Return the command that makes a namespace."""
    return f"pulsar-admin namespaces create {_word(namespace.text)}"


def grant_on_namespace(namespace: NamespaceName, role: str, actions: Iterable[Json]) -> str:
    """Return the command that grants actions in a namespace; ``actions`` are all that the role shall have."""
    return (
        f"pulsar-admin namespaces grant-permission {_word(namespace.text)} --role {_word(role)} "
        f"--actions {_list(actions)}"
    )


def grant_on_topic(topic: TopicName, role: str, actions: Iterable[Json]) -> str:
    """Return the command that grants actions on a topic; ``actions`` are all that the role shall have there."""
    return f"pulsar-admin topics grant-permission {_word(topic.fqn)} --role {_word(role)} --actions {_list(actions)}"


def grant_on_subscription(namespace: NamespaceName, subscription: str, roles: Iterable[Json]) -> str:
    """Return the command that reserves a subscription's name for roles; ``roles`` are all of them."""
    found = _distinct(roles)
    if not _listable(found):
        return _curl(
            f"namespaces/{namespace}/permissions/subscription/{quote(subscription[:_NAME_MAX], safe='')}", found
        )
    return (
        f"pulsar-admin namespaces grant-subscription-permission {_word(namespace.text)} "
        f"--subscription {_word(subscription)} --roles {_list(found)}"
    )


def end_prefix_mode(namespace: NamespaceName) -> str:
    """Return the command after which subscriptions may have any name."""
    return f"pulsar-admin namespaces set-subscription-auth-mode {_word(namespace.text)} --subscription-auth-mode None"


def all_of(commands: Iterable[str]) -> str:
    """Return one line for a shell that runs all of these commands, each once."""
    return " && ".join(dict.fromkeys(commands))


def _word(text: str) -> str:
    return shlex.quote(_name(text))


def _name(text: str) -> str:
    """A name as it is, because the command has to work; an impossible one as it is shown."""
    return text if len(text) <= _NAME_MAX and text.isprintable() else shown(text)


def _list(items: Iterable[Json]) -> str:
    return shlex.quote(",".join(map(_name, _distinct(items))))


def _distinct(items: Iterable[Json]) -> list[str]:
    return list(dict.fromkeys(item for item in items if isinstance(item, str)))


def _listable(roles: Iterable[str]) -> bool:
    """Whether pulsar-admin can be given these roles: it takes them joined by commas."""
    return not any("," in role for role in roles)


def _curl(path: str, body: object, method: str = "POST") -> str:
    """Return the request of the REST interface, for what pulsar-admin cannot say; it needs a login, too."""
    sent = shlex.quote(json.dumps(body, ensure_ascii=True))
    return f"curl -X {method} -H 'Content-Type: application/json' -d {sent} \"$ADMIN_URL\"/admin/v2/{path}"
