"""The tenants that a self-test makes for itself, and removes whatever happens.

Their names are random and must not exist; nothing else is ever written to or removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

from magnetar.authorization.permission_table.matrix import ROLES, ScratchTenant
from magnetar.client.rest import Rest, RestRefusedError
from magnetar.model.errors import MagnetarError, NotAllowedError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject

_EXISTS = 409
_KEPT = "kept"
"""A topic that keeps the namespace from being deleted by those who may."""


def scratch_names(superuser: str, given: Mapping[str, str] | None = None) -> tuple[ScratchTenant, str]:
    """A tenant with the roles of one run, and the other tenant; ``given`` are real names of roles."""
    run = secrets.token_hex(6)
    roles = {role: f"self-test-{run}-{role}" for role in ROLES if role != "none"}
    return ScratchTenant(
        f"self-test-{run}", {**roles, **(given or {}), "superuser": superuser}
    ), f"self-test-{run}-other"


@contextmanager
def scratch_tenants(rest: Rest, scratch: ScratchTenant, other: str) -> Iterator[None]:
    """Make both tenants, and remove them with all that is in them. Raises NotAllowedError if one is there already."""
    clusters = rest.ask("GET", "/admin/v2/clusters")
    made: list[str] = []
    try:
        for tenant, role in ((scratch.tenant, "admin"), (other, "other-admin")):
            info = {"adminRoles": [scratch.roles[role]], "allowedClusters": clusters[:1]}
            try:
                rest.ask("PUT", f"/admin/v2/tenants/{tenant}", info)
            except RestRefusedError as refused:
                if refused.http_status == _EXISTS:
                    raise NotAllowedError(f"the tenant {tenant} exists already: a self-test touches no data") from None
                raise
            made.append(tenant)
        rest.ask("PUT", f"/admin/v2/namespaces/{scratch.namespace}", _made_with(scratch.policies))
        rest.ask("PUT", f"/admin/v2/persistent/{scratch.namespace}/{_KEPT}")
        yield
    finally:
        for tenant in made:
            _remove(rest, tenant)


def _made_with(policies: JsonObject) -> JsonObject:
    return policies


def _remove(rest: Rest, tenant: str) -> None:
    """Remove a tenant that was made here. What fails is tried again once: topics may be on their way in."""
    for last in (False, True):
        try:
            for namespace in rest.ask("GET", f"/admin/v2/namespaces/{tenant}") or ():
                for topic in _partitioned(rest, namespace):
                    _delete(rest, topic, "/partitions?force=true")
                for topic in rest.ask(
                    "GET", f"/admin/v2/namespaces/{namespace}/topics?mode=ALL&includeSystemTopic=true"
                ):
                    _delete(rest, topic, "?force=true")
                rest.ask("DELETE", f"/admin/v2/namespaces/{namespace}")
            rest.ask("DELETE", f"/admin/v2/tenants/{tenant}")
        except MagnetarError:
            if last:
                raise
        else:
            return


def _partitioned(rest: Rest, namespace: str) -> Iterator[str]:
    for domain in ("persistent", "non-persistent"):
        yield from rest.ask("GET", f"/admin/v2/{domain}/{namespace}/partitioned")


def _delete(rest: Rest, topic: str, how: str) -> None:
    name = TopicName.parse(topic)
    path = f"/admin/v2/{name.domain}/{name.namespace}/{quote(name.local_name, safe='')}{how}"
    try:
        rest.ask("DELETE", path)
    except RestRefusedError as refused:
        if refused.http_status != 404:
            raise
