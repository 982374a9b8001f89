"""Settings that protect are built, refused or not needed; settings with an effect have a reader."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.config.authorization_settings import MULTI_ROLES, PROVIDER, contradiction
from magnetar.config.configuration import has_effect, load, pulsar_settings, setting_types
from magnetar.config.protection import NOT_NEEDED, PROTECTIONS
from magnetar.config.settings import Settings
from magnetar.config.settings_list import settings_list
from magnetar.model.errors import InvalidValueError
from magnetar.model.topic_policies import TopicPolicies
from magnetar.offload import object_store

SOURCE = Path(__file__).parents[3] / "src" / "magnetar"
UNBUILT = sorted(name for name in PROTECTIONS if not has_effect(name))
LOOKS_LIKE_PROTECTION = re.compile(
    r"tls|auth|encrypt|ssl|sasl|token|password|trust|secret|kinit|superUser|proxyRoles|roles|acl|athenz|strict[A-Z]|"
    r"maxConnections|maxUnacked|maxSameAddress|ThrottlingRate|ThrottlingMax|httpMax|httpRequests|"
    r"maxConcurrent|maxHttp|maxConsumerMetadata|filterNames|interceptors$|PayloadProcessors|enablePersistent|"
    r"IfUnwritable|disableHttp|InFlightSize|VersionCheck",
    re.IGNORECASE,
)
BUT_DOES_NOT = {
    "bookkeeper": r"bookkeeperClient(Min|Enforce|Region|Reorder|Health|Quarantine|Spec|Throttle|Isolation|Disk|Expose)",
    "no protection": r"disableBrokerInterceptors|aggregatePublisherStatsByProducerName|strictBookieAffinityEnabled|"
    r"dispatchThrottlingRatePerReplicator|dispatchThrottlingRateRelativeToPublishRate|"
    r"maxConcurrentNonPersistent|transactionBufferClientMaxConcurrentRequests|"
    r"brokerPublisherThrottlingTick|loadBalancer|webSocket|maxUnackedRanges|MaxUnackedRanges|brokerInterceptorsDirectory|brokerEntryMetadataInterceptors",
}


def asked(tmp_path: Path, text: str) -> str:
    file = tmp_path / "broker.conf"
    file.write_text(text)
    with pytest.raises(InvalidValueError) as refused:
        load(file=file)
    return str(refused.value)


def sample(name: str) -> str:
    """A value that asks for protection."""
    found = PROTECTIONS[name]
    if found.from_value is not None:
        return str(int(found.from_value) - 1)
    if found.off in (("false",), ("true",)):
        return "true" if found.off == ("false",) else "false"
    return "7"


@pytest.mark.parametrize("name", UNBUILT)
def test_protection_refuses_the_start(tmp_path: Path, name: str) -> None:
    said = asked(tmp_path, f"# x\n{name}={sample(name)}\n")
    assert said.startswith(
        f"{tmp_path}/broker.conf:2: {name}: '{sample(name)}' is not accepted; magnetar "
        + ("does not do that yet" if PROTECTIONS[name].relied_on else "cannot protect")
    )
    assert said.endswith(PROTECTIONS[name].instead)
    with pytest.raises(InvalidValueError, match=f"--set {name}="):
        load(flags=[f"{name}={sample(name)}"])
    with pytest.raises(InvalidValueError, match=f"environment variable PULSAR_PREFIX_{name}"):
        load(environment={f"PULSAR_PREFIX_{name}": sample(name)})


@pytest.mark.parametrize("name", UNBUILT)
def test_values_that_protect_nothing_are_taken(tmp_path: Path, name: str) -> None:
    """Values that protect nothing are accepted, above all those of the distribution's files."""
    known = pulsar_settings()[name]
    for value in ("", known.default, *known.shipped, *PROTECTIONS[name].off):
        assert len(load(flags=[f"{name}={value}"]).notices) == 1, value


def test_the_last_word_counts(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("httpRequestsLimitEnabled=true\n")
    assert len(load(file=file, flags=["httpRequestsLimitEnabled=false"]).notices) == 2
    with pytest.raises(InvalidValueError, match="--set httpRequestsLimitEnabled=true"):
        load(flags=["httpRequestsLimitEnabled=true", "httpRequestsLimitEnabled="])


def test_a_limit_that_is_kept_anyway_is_taken() -> None:
    """Topics are loaded one after the other: no limit is passed but 0, with which none could be loaded."""
    assert "maxConcurrentTopicLoadRequest" in load(flags=["maxConcurrentTopicLoadRequest=1"]).notices[0]
    with pytest.raises(InvalidValueError, match="maxConcurrentTopicLoadRequest"):
        load(flags=["maxConcurrentTopicLoadRequest=0"])


def test_everything_that_looks_like_protection_was_judged() -> None:
    judged = set(PROTECTIONS) | set(NOT_NEEDED) | {name for name in setting_types() if has_effect(name)}
    harmless = re.compile("|".join(BUT_DOES_NOT.values()))
    left = [name for name in pulsar_settings() if LOOKS_LIKE_PROTECTION.search(name) and name not in judged]
    assert [name for name in left if not harmless.search(name)] == []
    assert set(PROTECTIONS) | set(NOT_NEEDED) <= set(pulsar_settings())
    assert not set(PROTECTIONS) & set(NOT_NEEDED)


def test_an_offload_driver_without_a_url_is_refused(tmp_path: Path) -> None:
    assert "Set offloadUrl too" in asked(tmp_path, "managedLedgerOffloadDriver=aws-s3\n")
    assert load(flags=["managedLedgerOffloadDriver=aws-s3", "offloadUrl=file:///x"]).settings.offloadUrl == "file:///x"


# who reads a setting -----------------------------------------------------------------------------------------------


@cache
def attributes(*, of_policies: bool) -> frozenset[str]:
    """Names that are read as an attribute outside runtime/ (and outside the place where policies are put together)."""
    return frozenset(_attributes(of_policies))


def _attributes(of_policies: bool) -> Iterator[str]:
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith(("runtime/", "testing/")):
            continue
        if of_policies and (not place.startswith("broker/") or place.startswith(POLICIES)):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                yield node.attr


POLICIES = "broker/policies/"


@pytest.mark.parametrize("name", [name for name in setting_types() if has_effect(name)])
def test_every_effective_setting_has_a_reader(name: str) -> None:
    read_as = {"advertisedAddress": "advertised_host"}.get(name, name)
    assert read_as in attributes(of_policies=False)


def test_settings_that_policies_override_have_a_reader_too() -> None:
    """Settings that only broker/policies/broker_policies.py reads become a member of TopicPolicies that others obey."""
    tree = ast.parse((SOURCE / POLICIES / "broker_policies.py").read_text("utf-8"))
    made = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "of_broker")
    returned = next(node for node in ast.walk(made) if isinstance(node, ast.Return)).value
    assert isinstance(returned, ast.Call)
    obeyed = attributes(of_policies=True)
    seen = set()
    for keyword in returned.keywords:
        assert keyword.arg in TopicPolicies._fields
        read = {node.attr for node in ast.walk(keyword.value) if isinstance(node, ast.Attribute)} & set(setting_types())
        for name in read:
            assert (keyword.arg in obeyed) == has_effect(name), (name, keyword.arg)
        seen |= read
    assert len(seen) > 30


def test_what_has_no_effect_is_not_listed() -> None:
    lines = "\n".join(settings_list(load()))
    assert "maxUnackedMessagesPerConsumer=" in lines
    for name in setting_types():
        assert (f"\n{name}=" in "\n" + lines) == has_effect(name)
    assert not has_effect("brokerDeduplicationSnapshotIntervalSeconds")


@pytest.mark.parametrize(
    ("flag", "wanted"),
    [
        ("managedLedgerCacheSizeMB=1000000000000", "0 to 1048576"),
        ("maxMessagePublishBufferSizeInMB=-2", "-1 to 1048576"),
        ("maxMessageSize=1_000", "whole number"),
        ("maxMessageSize=١٠٠", "whole number"),
        ("maxMessageSize=" + "9" * 5000, "whole number"),
        ("maxMessageSize=1e3", "whole number"),
        ("backlogQuotaDefaultLimitGB=nan", "number from"),
        ("backlogQuotaDefaultLimitGB=1_000", "number from"),
        ("backlogQuotaDefaultLimitGB=\u0663", "number from"),
        ("backlogQuotaDefaultLimitGB=inf", "number from"),
        ("webServicePort=-1", "0 to 65535"),
        ("clusterName=a/b", "letters, digits"),
        ("bindAddress=http://x", "host name"),
        ("advertisedAddress=a b", "host name"),
        ("webServiceAllowedHosts=http://x", "host names"),
        ("offloadUrl=a\x01b", "control characters"),
    ],
)
def test_values_beyond_every_use_are_refused(flag: str, wanted: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        load(flags=[flag])
    assert wanted in str(refused.value)
    assert flag.partition("=")[0] in str(refused.value)


@pytest.mark.parametrize(
    ("url", "missing", "said"),
    [
        ("file:///tmp/x", "pyarrow", "needs pyarrow: pip install 'magnetar[spark]'"),
        ("s3://bucket/x", "obstore", "needs obstore: pip install 'magnetar[pipelines]'"),
        ("ftp://host/x", "", "is no place for offloaded ledgers"),
    ],
)
def test_offloading_without_its_packages_refuses_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, missing: str, said: str
) -> None:
    monkeypatch.setattr(object_store, "find_spec", lambda package: None if package == missing else True)
    data = tmp_path / "data"
    refused = CliRunner().invoke(app, ["standalone", "--data", str(data), "--set", f"offloadUrl={url}"])
    assert refused.exit_code == 1
    assert f"--set offloadUrl={url}: offloadUrl: " in refused.output
    assert said in refused.output
    assert not data.exists()


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null", "/dev/null/below"])
def test_offloading_to_where_nothing_can_be_written_refuses_the_start(tmp_path: Path, place: str) -> None:
    """It was accepted, and every ledger that was to go there failed later."""
    data = tmp_path / "data"
    refused = CliRunner().invoke(app, ["standalone", "--data", str(data), "--set", f"offloadUrl=file://{place}"])
    assert refused.exit_code == 1
    assert f"offloadUrl: nothing can be written to the directory {place}" in refused.output
    assert not data.exists()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("authorizationEnabled=true", "broker.conf:1: authorizationEnabled: roles are known only after a login"),
    ],
)
def test_authorization_that_cannot_be_honoured_refuses_the_start(tmp_path: Path, text: str, wanted: str) -> None:
    assert wanted in asked(tmp_path, text + "\n")


def test_only_pulsars_own_rules_are_there() -> None:
    provider = "com.example.Mine"
    wanted = Settings(authorizationEnabled=True, authorizationProvider=provider)
    assert contradiction(wanted, authenticated=True).startswith(f"authorizationProvider: '{provider}' cannot be run")
    for known in (PROVIDER, MULTI_ROLES):
        assert not contradiction(Settings(authorizationEnabled=True, authorizationProvider=known), authenticated=True)
    assert not contradiction(Settings(authorizationProvider=provider), authenticated=False)


def test_lists_of_roles_are_split_at_commas() -> None:
    assert Settings(superUserRoles=" a, b,,a ,").super_user_roles == ("a", "b")
    assert Settings().proxy_roles == ()
