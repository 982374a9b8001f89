"""A namespace that is being removed takes no new topic: the next owner of its name would inherit it (rule 11.3.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magnetar.model.names import NamespaceName, TopicName
from magnetar.testing.rawclient import RawClientError
from tests.support.real_broker import RealBroker, run_on_broker

NAMESPACE = "/admin/v2/namespaces/public/gone"
TOPICS = "/admin/v2/persistent/public/gone"


def meanwhile(broker: RealBroker, act: Any) -> None:
    """Have ``act()`` done each time when a topic of a user was deleted."""
    service = broker.node.broker.service
    delete = service.delete

    async def deleting(name: TopicName, *, force: bool) -> None:
        await delete(name, force=force)
        await act()

    service.delete = deleting  # type: ignore[method-assign]


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_topic_that_comes_while_its_namespace_goes_is_no_topic_of_the_next(tmp_path: Path, domain: str) -> None:
    """A producer whose topic is deleted comes back at once, and would make it anew."""

    async def act(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", NAMESPACE))[0] == 204
        assert (await broker.ask("PUT", f"{TOPICS}/a"))[0] == 204
        client = await broker.client()
        refused: list[object] = []

        async def come_back() -> None:
            try:
                await client.producer(f"{domain}://public/gone/b")
            except RawClientError as error:
                refused.append(error)

        meanwhile(broker, come_back)
        assert (await broker.ask("DELETE", NAMESPACE + "?force=true"))[0] == 204
        assert broker.node.broker.service.names_in(NamespaceName.parse("public/gone")) == []
        assert (await broker.ask("PUT", NAMESPACE))[0] == 204
        assert await broker.ask("GET", f"{NAMESPACE}/topics?mode=ALL") == (200, [])
        await client.producer(f"{domain}://public/gone/b")

    run_on_broker(tmp_path, act, forceDeleteNamespaceAllowed=True)


def test_a_tenant_that_gets_a_namespace_while_it_goes_stays_with_it(tmp_path: Path) -> None:
    """A namespace without a tenant would come with all its grants to whoever gets a tenant of that name next."""

    async def act(broker: RealBroker) -> None:
        tenant = {"adminRoles": ["first"], "allowedClusters": ["standalone"]}
        assert (await broker.ask("PUT", "/admin/v2/tenants/t", tenant))[0] == 204
        assert (await broker.ask("PUT", "/admin/v2/namespaces/t/one"))[0] == 204
        assert (await broker.ask("PUT", "/admin/v2/persistent/t/one/a"))[0] == 204

        async def make_another() -> None:
            assert (await broker.ask("PUT", "/admin/v2/namespaces/t/two"))[0] == 204

        meanwhile(broker, make_another)
        refused = 409, {"reason": "The tenant still has active namespaces"}
        assert await broker.ask("DELETE", "/admin/v2/tenants/t?force=true") == refused
        assert await broker.ask("GET", "/admin/v2/namespaces/t") == (200, ["t/two"])

    run_on_broker(tmp_path, act, forceDeleteTenantAllowed=True)
