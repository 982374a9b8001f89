"""``magnetar permissions self-test`` against a real broker: all commands and routes, all roles, all kinds of topics."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.permission_table.matrix import ROLES, ScratchTenant, cases
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.cli.permissions import command as permissions_command
from magnetar.cli.permissions import self_test
from magnetar.cli.permissions.command import REFUSED, app
from magnetar.security.tokens.keys import private_key
from magnetar.security.tokens.signer import new_pair, secret_signer, sign
from tests.support.real_broker import RealBroker, real_broker

SECRET = bytes(range(32))
SCRATCH = ScratchTenant("scratch", {role: f"r-{role}" for role in ROLES})


def run(
    tmp_path: Path,
    scenario: Callable[[RealBroker, Callable[..., Awaitable[Any]]], Awaitable[None]],
    transactions: bool = True,
    algorithm: str = "",
) -> None:
    """A broker with tokens, of a key pair or else of a secret, and the command with a superuser's login."""
    key, token = tmp_path / "private.key", tmp_path / "root.token"
    if algorithm:
        pair = new_pair(algorithm)
        key.write_bytes(pair.private)
        (tmp_path / "public.key").write_bytes(pair.public)
        signer, option = private_key(pair.private, algorithm, "the test's key"), "--private-key"
        known = {"tokenPublicKey": f"file://{tmp_path}/public.key", "tokenPublicAlg": algorithm}
    else:
        key.write_bytes(SECRET)
        signer, option = secret_signer(SECRET, "HS256", "the test's key"), "--secret-key"
        known = {"tokenSecretKey": f"file://{key}"}
    token.write_text(sign({"sub": "root"}, signer, []))
    settings = {
        **known,
        "authenticationEnabled": True,
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "authorizationEnabled": True,
        "superUserRoles": "root",
        "transactionCoordinatorEnabled": transactions,
    }

    async def main() -> None:
        async with real_broker(tmp_path / "data", **settings) as broker:

            async def command(*words: str) -> Any:
                urls = ["--admin-url", broker.node.broker.service.web_service_url]
                urls += ["--service-url", broker.node.broker.service.service_url]
                login = [option, str(key), "--superuser", "root", "--token", f"file:{token}"]
                return await asyncio.to_thread(CliRunner().invoke, app, ["self-test", *urls, *login, *words])

            await scenario(broker, command)
            left = [name for name in broker.node.broker.service.resources.tenants.names() if "self-test" in name]
            assert left == []

    asyncio.run(main())


@pytest.mark.parametrize("transactions", [True, False])
def test_the_whole_matrix(tmp_path: Path, transactions: bool) -> None:
    async def scenario(broker: RealBroker, command: Callable[..., Awaitable[Any]]) -> None:
        done = await command()
        last = done.output.splitlines()[-1]
        sys.stdout.write(f"{last}\n")
        assert done.exit_code == 0, done.output[-3000:]
        count = len([*cases(SCRATCH)])
        assert re.fullmatch(rf"{count} cases of \d+ commands and routes in [\d.]+ s: 0 differences", last)
        assert "- - - - - - - +" in re.sub(r" +", " ", done.output)

    run(tmp_path, scenario, transactions)


def test_a_broker_that_lets_others_in_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "cases", lambda scratch: (one for one in cases(scratch) if one.role == "limited"))

    async def scenario(broker: RealBroker, command: Callable[..., Awaitable[Any]]) -> None:
        authorizer = broker.node.broker.service.authorizer
        assert isinstance(authorizer, Authorizer)
        decide = authorizer.decide

        def lenient(caller: Caller, access: Any) -> Decision:
            found = decide(caller, access)
            return Decision(True, "a bug") if getattr(access, "subscription", None) else found

        authorizer.decide = lenient  # type: ignore[method-assign]  # a broker that forgot the subscription
        done = await command("--quiet")
        assert done.exit_code == REFUSED
        assert "CommandSubscribe (persistent): the broker let limited in, the table does not" in done.output
        assert "subscription/{subscription}/skip_all (non-persistent): the broker let limited in" in done.output

    run(tmp_path, scenario)


def test_the_scratch_tenants_go_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: RealBroker, command: Callable[..., Awaitable[Any]]) -> None:
        done = await command("--seconds", "1")
        assert done.exit_code in (0, 1)  # a fast machine may be done
        if done.exit_code:
            assert "time is up after" in done.output
        asked = self_test.SelfTest._over_http
        count = 0

        def interrupted(run: self_test.SelfTest, case: Any) -> tuple[bool, str]:
            nonlocal count
            count += 1
            if count == 200:
                raise KeyboardInterrupt
            return asked(run, case)

        monkeypatch.setattr(self_test.SelfTest, "_over_http", interrupted)
        assert (await command()).exit_code != 0
        assert count == 200

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("number", "ignored"), [(signal.SIGTERM, False), (signal.SIGHUP, False), (signal.SIGHUP, True)]
)
def test_signals_end_the_command_so_that_it_cleans_up(number: signal.Signals, ignored: bool) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
        permissions_command._end_on_signals()
        with nullcontext() if ignored else pytest.raises(SystemExit, match=str(128 + number)):
            os.kill(os.getpid(), number)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@pytest.mark.parametrize("algorithm", ["RS256", "ES384"])
def test_tokens_are_minted_with_a_private_key_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """The broker knows the public half of it."""
    monkeypatch.setattr(self_test, "cases", lambda scratch: (one for one in cases(scratch) if one.role == "limited"))

    async def scenario(broker: RealBroker, command: Callable[..., Awaitable[Any]]) -> None:
        done = await command("--quiet")
        assert done.exit_code == 0, done.output[-3000:]
        other = await command("--secret-key", str(tmp_path / "private.key"))
        assert other.exit_code == 1 and "--secret-key (tokenSecretKey) or --private-key" in other.output

    run(tmp_path, scenario, algorithm=algorithm)


def test_the_cases_are_the_whole_table() -> None:
    found = [*cases(SCRATCH)]
    assert {case.row for case in found if case.command is None} == {" ".join(route) for route in ROUTE_PERMISSIONS}
    assert {case.role for case in found} == set(ROLES)
    assert {case.twin for case in found} == {"", "persistent", "non-persistent", "partition", "system"}
    assert len({(case.row, case.role, case.twin) for case in found}) == len(found)
    assert {case.command.__name__ for case in found if case.command} == {
        "CommandLookupTopic", "CommandPartitionedTopicMetadata", "CommandGetTopicsOfNamespace", "CommandWatchTopicList",
        "CommandGetSchema", "CommandGetOrCreateSchema", "CommandProducer", "CommandSubscribe",
        "CommandAddPartitionToTxn", "CommandAddSubscriptionToTxn", "CommandEndTxnOnPartition",
        "CommandEndTxnOnSubscription",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "status", "reason", "refused"),
    [
        ("GET", 401, "", True),
        ("GET", 401, "Unauthorized to validateTopicOperation for operation [LOOKUP]", True),
        ("HEAD", 403, "", True),
        ("GET", 403, "", False),
        ("PUT", 400, "", False),
        ("GET", 404, "Topic not found", False),
        ("GET", 200, "", False),
    ],
)
def test_what_is_a_refusal(method: str, status: int, reason: str, refused: bool) -> None:
    """Apache Pulsar gives those without a login no reason."""
    assert self_test._refused(method, status, reason) is refused
