"""``magnetar config`` lists every setting with the origin of its value, in a form that can be read again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.config.configuration import has_effect, load
from magnetar.config.settings import Settings
from magnetar.config.settings_list import settings_list


def entries(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_every_setting_with_value_origin_and_pulsars_default(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("# x\nmaxMessageSize=1000\nzookeeperServers=\n")
    result = CliRunner(env={"PULSAR_PREFIX_clusterName": "c"}).invoke(
        app, ["config", "--conf", str(file), "--set", "journalSyncData=false"]
    )
    assert result.exit_code == 0, result.output
    shown = entries(result.stdout)
    assert set(shown) == {field.name for field in dataclasses.fields(Settings) if has_effect(field.name)}
    assert shown["maxMessageSize"] == f"1000  # from {file}:2, default 5242880"
    assert shown["clusterName"].startswith(
        "c  # from environment variable PULSAR_PREFIX_clusterName, default standalone"
    )
    assert shown["journalSyncData"].startswith("false  # from --set journalSyncData=false, default true")
    assert shown["bindAddress"] == "127.0.0.1  # Pulsar's default 0.0.0.0"
    assert shown["subscriptionTypesEnabled"] == "Failover,Shared,Key_Shared,Exclusive"
    assert shown["brokerDeleteInactiveTopicsMaxInactiveDurationSeconds"] == ""


def test_what_is_printed_can_be_read_again(tmp_path: Path) -> None:
    loaded = load(flags=["maxMessageSize=77", "backlogQuotaDefaultLimitGB=2.5", "subscriptionTypesEnabled=Shared"])
    lines = [line.partition("  # ")[0] for line in settings_list(loaded)]
    file = tmp_path / "again.conf"
    file.write_text("\n".join(lines))
    assert load(file=file).settings == loaded.settings


def test_changed_only_lists_chosen_settings() -> None:
    loaded = load(flags=["maxMessageSize=77"])
    assert entries("\n".join(settings_list(loaded, changed_only=True))) == {
        "maxMessageSize": "77  # from --set maxMessageSize=77, default 5242880"
    }


def test_a_misspelt_setting_is_named() -> None:
    result = CliRunner().invoke(app, ["config", "--set", "brokerServicPort=1"])
    assert result.exit_code == 1
    assert "did you mean brokerServicePort?" in result.stderr


def test_secrets_are_not_shown() -> None:
    """What may be a secret is neither listed nor part of an error or of a ``repr``."""
    for value in ("c2VjcmV0c2VjcmV0", "data:;base64,c2VjcmV0", "data:,admin:{SHA}xyz"):
        for name in ("tokenSecretKey", "basicAuthConf"):
            loaded = load(flags=[f"{name}={value}"])
            listed = "\n".join(settings_list(loaded, changed_only=True))
            assert f"# {name} is set, from --set {name}, and not shown" in listed
            assert value not in listed + repr(loaded.settings)
            result = CliRunner().invoke(app, ["config", "--set", f"{name}={value}\x01"])
            assert result.exit_code == 1
            assert value not in result.output
