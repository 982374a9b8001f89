"""``magnetar permissions explain`` against a broker with tokens and authorization, over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.permissions.command import REFUSED, app
from magnetar.cli.permissions.question import in_words, question_path, read_as, short_form
from magnetar.contexts.context import Context
from magnetar.contexts.context_file import Contexts
from magnetar.model.errors import InvalidValueError
from magnetar.model.policies import JsonObject
from magnetar.security.tokens.signer import secret_signer, sign
from tests.support.real_broker import RealBroker, real_broker

SECRET = bytes(range(32))


def token_file(directory: Path, role: str) -> Path:
    file = directory / f"{role}.token"
    file.write_text(sign({"sub": role}, secret_signer(SECRET, "HS256", "the test's key"), []))
    return file


def test_the_command_says_why_and_its_remedy_works(tmp_path: Path) -> None:
    key = tmp_path / "secret.key"
    key.write_bytes(SECRET)
    tokens = {role: token_file(tmp_path, role) for role in ("root", "alice", "bob")}

    async def explain(broker: RealBroker, asking: str, *words: str) -> tuple[int, str]:
        url = broker.node.broker.service.web_service_url
        arguments = ["explain", *words, "--admin-url", url, "--token", f"file:{tokens[asking]}"]
        result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
        return result.exit_code, result.output

    async def scenario() -> None:
        settings = {
            "authenticationEnabled": True,
            "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
            "tokenSecretKey": f"file://{key}",
            "authorizationEnabled": True,
            "superUserRoles": "root",
        }
        async with real_broker(tmp_path / "data", **settings) as broker:
            resources = broker.node.broker.service.resources
            await resources.tenants.create("public", {"adminRoles": [], "allowedClusters": ["standalone"]})
            await resources.namespaces.create("public", "default")
            status, text = await explain(broker, "root", "alice", "clear-backlog", "public/default/orders/sub1")
            assert (status, text) == (
                REFUSED,
                "no: alice has no consume on public/default nor on persistent://public/default/orders\n"
                "-> pulsar-admin namespaces grant-permission public/default --role alice --actions consume\n",
            )
            assert await explain(broker, "alice", "alice", "clear-backlog", "public/default/orders/sub1") == (
                REFUSED,
                "no: alice has no consume on public/default nor on persistent://public/default/orders\n"
                "-> ask an administrator of the tenant public\n",
            )
            grants: JsonObject = {"auth_policies": {"namespace_auth": {"alice": ["consume"]}}}
            await resources.namespaces.change(next(iter(resources.namespaces.all())), lambda _: grants)
            status, text = await explain(broker, "alice", "alice", "GET_STATS", "orders")
            assert (status, text) == (0, "yes: alice has consume on public/default\n")
            url = broker.node.broker.service.web_service_url
            here = Context(token=f"file:{tokens['root']}", web_url=url)
            saved = Contexts(tmp_path / "magnetar" / "contexts.toml").with_context("here", here)
            saved.write()
            for more in ((), ("--context", "here")):
                words = ["explain", "alice", "GET_STATS", "orders", *more]
                asked = await asyncio.to_thread(CliRunner().invoke, app, words, env={"XDG_CONFIG_HOME": str(tmp_path)})
                assert (asked.exit_code, asked.output) == (0, "yes: alice has consume on public/default\n")
            status, text = await explain(broker, "bob", "alice", "produce", "orders")
            assert status == 1 and "administrate resources on this tenant" in text
            status, text = await explain(broker, "root", "alice", "fly", "orders")
            assert status == 1 and "'fly' is no operation on a tenant" in text
            status, text = await explain(
                broker, "root", "alice", "PUT /admin/v2/namespaces/public/default/unload", "--json"
            )
            assert status == REFUSED and '"only superusers may unload namespaces"' not in text and "unload" in text

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("operation", "target", "found"),
    [
        ("produce", "orders", {"topic": "orders"}),
        ("skip", "orders/sub1", {"topic": "orders", "subscription": "sub1"}),
        ("clear-backlog", "a/b/orders/sub1", {"topic": "a/b/orders", "subscription": "sub1"}),
        ("clear-backlog", "orders", {"topic": "orders"}),
        ("set-retention", "acme/eu", {"namespace": "acme/eu"}),
        ("grant-permission", "acme/eu", {"namespace": "acme/eu"}),
        ("consume", "acme/eu/orders", {"topic": "acme/eu/orders"}),
        ("consume", "acme/eu/orders/s/1", {"topic": "acme/eu/orders", "subscription": "s/1"}),
        ("consume", "non-persistent://acme/eu/orders", {"topic": "non-persistent://acme/eu/orders"}),
        ("consume", "persistent://acme/eu/orders/s1", {"topic": "persistent://acme/eu/orders", "subscription": "s1"}),
        ("get-topics", "acme/eu", {"namespace": "acme/eu"}),
        ("list-namespaces", "acme", {"tenant": "acme"}),
    ],
)
def test_the_operation_tells_what_an_object_is(operation: str, target: str, found: dict[str, str]) -> None:
    assert short_form(operation, target) == found


@pytest.mark.parametrize("operation", ["clear-backlog", "UNSUBSCRIBE"])
def test_what_may_be_a_namespace_or_a_subscription_is_not_guessed(operation: str) -> None:
    said = r"may be a namespace, or .* write --namespace acme/orders, or public/default/acme/orders$"
    with pytest.raises(InvalidValueError, match=said):
        short_form(operation, "acme/orders")


def test_the_answer_says_how_two_parts_were_read() -> None:
    read = read_as("consume", "acme/orders")
    assert read == "acme/orders is read as the subscription orders of persistent://public/default/acme"
    answer = {"allowed": True, "reason": "r", "note": "", "remedy": "", "accesses": []}
    assert list(in_words(answer, read)) == ["yes: r", f"({read})"]
    for target in (None, "orders", "a/b/c", "a/b/c/s", "persistent://a/b/c"):
        assert read_as("consume", target) == ""
    assert read_as("set-retention", "acme/eu") == ""


def test_a_subscription_may_be_named_beside_its_topic() -> None:
    """As other commands have it."""
    path = question_path("alice", "consume", "persistent://acme/eu/orders", {"subscription": "s/1"})
    assert path == question_path("alice", "consume", "persistent://acme/eu/orders/s/1", {})


def test_an_object_is_named_once() -> None:
    with pytest.raises(InvalidValueError, match="not both"):
        question_path("alice", "consume", "orders", {"topic": "orders", "tenant": None})
    with pytest.raises(InvalidValueError, match="not both"):
        question_path("alice", "consume", "orders/s", {"subscription": "s"})
    with pytest.raises(InvalidValueError, match="is no topic"):
        short_form("consume", "persistent://acme/orders")
