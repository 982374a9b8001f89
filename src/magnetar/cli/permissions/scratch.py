"""The tenants that a self-test makes for itself, and removes whatever happens.

Their names are random and must not exist; nothing else is ever written to or removed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import quote

from magnetar.authorization.permission_table.matrix import ROLES, ScratchTenant
from magnetar.client.rest import Rest, RestRefusedError
from magnetar.model.errors import MagnetarError, NotAllowedError, NotAvailableError
from magnetar.model.names import TopicName
from magnetar.model.policies import JsonObject

_EXISTS = 409
_TRIES = 4
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
    failure: BaseException | None = None
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
    except BaseException as error:
        failure = error
        raise
    finally:
        for tenant in made:
            try:
                _remove(rest, tenant)
            except MagnetarError as left:
                if failure is None:
                    raise
                raise NotAvailableError(f"{failure}; and {left}") from failure


def _made_with(policies: JsonObject) -> JsonObject:
    return policies


def _remove(rest: Rest, tenant: str) -> None:
    """Remove a tenant that was made here. Raises MagnetarError, which names what is left, after some tries.

    Topics may be on their way in; and Apache Pulsar may begin to delete a namespace and answer that it cannot.
    """
    for number in range(1, _TRIES + 1):
        try:
            for namespace in rest.ask("GET", f"/admin/v2/namespaces/{tenant}") or ():
                with suppress(RestRefusedError):
                    _empty(rest, namespace)
                rest.ask("DELETE", f"/admin/v2/namespaces/{namespace}")
            rest.ask("DELETE", f"/admin/v2/tenants/{tenant}")
        except MagnetarError as error:
            if isinstance(error, RestRefusedError) and error.http_status == 404:
                return
            if number == _TRIES:
                raise NotAvailableError(
                    f"the tenant {tenant} could not be removed: {error}; remove it with "
                    f"pulsar-admin tenants delete {tenant} --force"
                ) from None
            time.sleep(number / 2)
        else:
            return


def _empty(rest: Rest, namespace: str) -> None:
    for topic in _partitioned(rest, namespace):
        _delete(rest, topic, "/partitions?force=true")
    for topic in rest.ask("GET", f"/admin/v2/namespaces/{namespace}/topics?mode=ALL&includeSystemTopic=true"):
        _delete(rest, topic, "?force=true")


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
