"""Names that a broker knows, for a key press: asked within a second, and none where that fails.

A name stands in the user's command line once it is offered, and others chose it: only names are offered that no shell
reads anything else into.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from magnetar.client.rest import Rest
    from magnetar.contexts.broker_connection import ConnectionFlags
    from magnetar.security.credentials.method import ClientCredentials

SECONDS: Final = 1.0
"""The longest that a user waits for names after a key press."""
_PLAIN: Final = re.compile(r"[\w./:%+@,][\w./:%+@,=-]*")
_TENANTS_MAX: Final = 20
"""Of more tenants the namespaces are not asked for: a tenant has to be typed first."""
_DOMAINS: Final = ("persistent", "non-persistent")


def flags_of(given: Mapping[str, str]) -> ConnectionFlags | None:
    """Return what the words of a line say about the connection, by names of options with underscores; None where they
    name a broker by an address that is not that of its REST interface."""
    from magnetar.contexts.broker_connection import ConnectionFlags

    if given.get("url") or given.get("service_url"):
        return None
    return ConnectionFlags(
        context=given.get("context"),
        client_conf=given.get("client_conf"),
        web_url=given.get("admin_url"),
        token=given.get("token"),
        auth_plugin=given.get("auth_plugin"),
        auth_params=given.get("auth_params"),
        trust=given.get("trust") or given.get("tls_trust_cert_path"),
    )


def names_in_time(kind: str, prefix: str, topic: str, flags: ConnectionFlags) -> list[str]:
    """Return the names of a kind (topic, namespace, tenant, subscription) that begin with a text; ``topic`` is the one
    whose subscriptions are asked for. None are returned where the broker is not there, refuses, or takes longer."""
    found: list[str] = []

    def ask() -> None:
        try:
            rest = _rest(flags)
            if rest is not None:
                found.extend(_LOOKS[kind](_Names(rest), prefix, topic))
        except Exception:  # a shell has no place for what went wrong: the command itself will say it
            return

    # a resolver of names or a file may block for longer than any time-out says: this thread ends with the process
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    return [name for name in list(found) if _PLAIN.fullmatch(name)]


def _rest(flags: ConnectionFlags) -> Rest | None:
    from magnetar.contexts.broker_connection import connection

    found = connection(flags)
    return found.rest(SECONDS) if _at_once(found.login.credentials) else None


def _at_once(credentials: ClientCredentials) -> bool:
    """Whether credentials are there without a program, which might ask the user, and without a request to an issuer."""
    from magnetar.security.credentials.client_conf import ConfiguredCredentials, read_client_conf
    from magnetar.security.credentials.oauth2 import OAuth2Credentials

    if isinstance(credentials, ConfiguredCredentials):
        credentials = read_client_conf(credentials.path).credentials
    return not isinstance(credentials, OAuth2Credentials) and "from command:" not in str(credentials)


@dataclass(frozen=True, slots=True)
class _Names:
    rest: Rest

    def tenants(self, prefix: str, _topic: str = "") -> Iterable[str]:
        return [name for name in self._get("tenants") if name.startswith(prefix)]

    def namespaces(self, prefix: str, _topic: str = "") -> Iterable[str]:
        tenant, slash, _ = prefix.partition("/")
        tenants = [tenant] if slash else list(self.tenants(prefix))
        if len(tenants) > _TENANTS_MAX:
            return []
        return [name for one in tenants for name in self._get("namespaces", one) if name.startswith(prefix)]

    def topics(self, prefix: str, _topic: str = "") -> Iterable[str]:
        """Those of public/default by their short names, those of a namespace once its name is typed, and before that
        the namespaces."""
        domain, mark, rest = prefix.partition("://")
        if mark and domain not in _DOMAINS:
            return []
        rest, shown = (rest, f"{domain}://") if mark else (prefix, "")
        domain = domain if mark else _DOMAINS[0]
        tenant, _, below = rest.partition("/")
        namespace, slash, _ = below.partition("/")
        if slash:
            return self._topics_of(domain, tenant, namespace, f"{shown}{tenant}/{namespace}/")
        if mark or "/" in rest:
            return [f"{shown}{name}/" for name in self.namespaces(rest)]
        return self._topics_of(domain, "public", "default", "")

    def subscriptions(self, _prefix: str, topic: str) -> Iterable[str]:
        from magnetar.model.names import TopicName

        name = TopicName.parse(topic)
        return self._get(name.domain, *name.namespace.text.split("/"), name.local_name, "subscriptions")

    def _topics_of(self, domain: str, tenant: str, namespace: str, shown: str) -> Iterable[str]:
        partitioned = set(self._get(domain, tenant, namespace, "partitioned"))
        topics = {name for name in self._get(domain, tenant, namespace) if not _is_partition(name, partitioned)}
        return [shown + name.partition("://")[2].split("/", 2)[2] for name in topics | partitioned]

    def _get(self, *parts: str) -> list[str]:
        answer: Any = self.rest.ask("GET", "/admin/v2/" + "/".join(quote(part, safe="") for part in parts))
        return [one for one in answer if isinstance(one, str)] if isinstance(answer, list) else []


def _is_partition(name: str, partitioned: set[str]) -> bool:
    topic, mark, index = name.rpartition("-partition-")
    return bool(mark) and index.isdecimal() and topic in partitioned


_LOOKS: Final[Mapping[str, Callable[[_Names, str, str], Iterable[str]]]] = {
    "topic": _Names.topics,
    "namespace": _Names.namespaces,
    "tenant": _Names.tenants,
    "subscription": _Names.subscriptions,
}
