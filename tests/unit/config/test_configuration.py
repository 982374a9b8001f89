"""Settings: sources, precedence, refusals."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from magnetar.config.configuration import about, load, pulsar_settings, setting_types
from magnetar.config.properties import Property, read_properties
from magnetar.config.settings import Settings
from magnetar.config.settings_list import settings_list
from magnetar.config.settings_page import settings_page
from magnetar.model.errors import InvalidValueError

ROOT = Path(__file__).parents[3]


def conf(path: Path, text: str) -> Path:
    file = path / "broker.conf"
    file.write_text(text, "utf-8")
    return file


def test_later_sources_win(tmp_path: Path) -> None:
    file = conf(tmp_path, "maxMessageSize=1000\nbrokerServicePort=1\nwebServicePort=1\nclusterName=f\n")
    environment = {"PULSAR_PREFIX_brokerServicePort": "2", "webServicePort": "2", "clusterName": "e", "HOME": "/x"}
    loaded = load(file=file, environment=environment, flags=["clusterName=flag", "webServicePort = 3"])
    settings = loaded.settings
    assert settings.maxMessageSize == 1000
    assert settings.brokerServicePort == 2
    assert settings.webServicePort == 3
    assert settings.clusterName == "flag"
    assert loaded.origin["maxMessageSize"] == f"{file}:1"
    assert loaded.origin["brokerServicePort"] == "environment variable PULSAR_PREFIX_brokerServicePort"
    assert "journalSyncData" not in loaded.origin
    assert loaded.notices == ()


def test_defaults_are_loopback_sync_and_the_numbers_of_the_rules() -> None:
    """The defaults are those of the rules; the broker listens on the loopback and syncs."""
    settings = load().settings
    assert settings == Settings()
    assert (settings.bindAddress, settings.journalSyncData) == ("127.0.0.1", True)
    assert settings.maxMessageSize == 5_242_880


@pytest.mark.parametrize("name", ["standalone.conf", "broker.conf"])
def test_files_of_the_distribution_are_taken_unchanged(tmp_path: Path, name: str) -> None:
    """Files with every key and value that the distribution ships are accepted with one notice without names."""
    text = "\n".join(f"{known.name}={(*known.shipped, known.default)[0]}" for known in pulsar_settings().values())
    text = "\n".join(line for line in text.splitlines() if "computed:" not in line)
    loaded = load(file=conf(tmp_path, text))
    assert len(loaded.notices) == 1
    assert "have no effect" in loaded.notices[0]
    assert "were changed" not in loaded.notices[0]
    assert loaded.settings.journalSyncData is False
    assert loaded.settings.bindAddress == "0.0.0.0"


def test_the_notice_names_settings_without_effect_that_were_changed(tmp_path: Path) -> None:
    loaded = load(file=conf(tmp_path, "zookeeperServers=zk:2181\nreplicationMetricsEnabled=false\nnumIOThreads=\n"))
    assert loaded.notices == (
        f"{tmp_path}/broker.conf: 3 settings of Apache Pulsar have no effect in magnetar; these were changed from "
        "Pulsar's own values: replicationMetricsEnabled, zookeeperServers (why: magnetar config --others)",
    )


def test_empty_value_leaves_the_setting(tmp_path: Path) -> None:
    file = conf(tmp_path, "maxMessageSize=\nadvertisedAddress=\n")
    assert load(file=file).settings == Settings()


def test_a_port_that_is_empty_is_not_opened(tmp_path: Path) -> None:
    """As in Pulsar; some port must be left for clients, and what TLS demands needs a port with TLS."""
    loaded = load(file=conf(tmp_path, "webServicePort=\nbrokerServicePort=\n"), flags=["brokerServicePortTls=0"])
    assert loaded.settings.brokerServicePort is None
    assert loaded.settings.webServicePort is None
    assert loaded.settings.brokerServicePortTls == 0
    for flags, said in (
        (["brokerServicePort="], "--set brokerServicePort=: brokerServicePort: no port is left for clients"),
        (["tlsEnabled=true"], "--set tlsEnabled=true: tlsEnabled: no port speaks TLS; set brokerServicePortTls=6651"),
        (["tlsRequireTrustedClientCertOnConnect=true"], "no port speaks TLS"),
    ):
        with pytest.raises(InvalidValueError) as caught:
            load(flags=flags)
        assert said in str(caught.value)


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    """Not in errors, not by ``magnetar config``, not in a representation."""
    loaded = load(flags=["tlsKeyStorePassword=hunter2"])
    assert loaded.settings.tlsKeyStorePassword == "hunter2"
    listed = list(settings_list(loaded))
    assert "# tlsKeyStorePassword is set, from --set tlsKeyStorePassword, and not shown" in listed
    shown = "\n".join(listed) + repr(loaded)
    with pytest.raises(InvalidValueError) as caught:
        load(flags=["tlsKeyStorePassword=hunter2\x01"])
    assert "hunter2" not in shown + str(caught.value)


@pytest.mark.parametrize(
    "flag",
    [
        *("tlsKeyStorePasword=hunter2", "tokensecretkey=hunter2", "tokenSecret = hunter2", "--tokenSecretKey=hunter2"),
        *("tokenSecretKey:hunter2", "tokenSecretKey hunter2", " tokenSecretKey hunter2", "tokenSecretKey"),
        *("brokerClientAuthenticationParameters=hunter2", "brokerClientTlsKeyStorePassword:hunter2"),
        *("hunter2", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.hunter2", "eyJhbGci.hunter2=x", "hunter2==", "hunter2="),
    ],
)
def test_a_secret_is_not_shown_under_a_misspelt_name_either(flag: str) -> None:
    """The line goes to the journal of whatever starts the broker."""
    try:
        said = str(load(flags=[flag]))
    except InvalidValueError as error:
        said = str(error)
    assert "hunter2" not in said


def test_a_secret_that_stands_in_the_place_of_a_name_is_not_shown(tmp_path: Path) -> None:
    """The notice about unknown names goes to the journal; a token in two lines has its end in the second."""
    text = "brokerClientAuthenticationParameters=token:eyJhbGci.\neyJzdWIi.hunter2\n" + "hunter2" * 20 + "\nzz=1\n"
    said = "\n".join(load(file=conf(tmp_path, text)).notices)
    assert "hunter2" not in said and "zz" in said and "a text of 140 characters" in said


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_bytes(b"\xef\xbb\xbfbrokerServicePort=17\r\nclusterName=c\r\n")
    settings = load(file=file).settings
    assert (settings.brokerServicePort, settings.clusterName) == (17, "c")


def test_what_is_no_file_of_settings_is_refused(tmp_path: Path) -> None:
    """A device or an image of a disk was read until the memory was full."""
    with pytest.raises(InvalidValueError, match=r"/dev/zero: cannot read the configuration: it has more than 4194304"):
        load(file=Path("/dev/zero"))
    file = tmp_path / "broker.conf"
    file.write_bytes(b"a=1\nb=\xe9\n")
    with pytest.raises(InvalidValueError, match=r"line 2 is not UTF-8 \(byte 0xe9\)"):
        load(file=file)


def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    """`--client-conf` with one hung, and heard no signal: not Ctrl-C either."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidValueError, match="it is a pipe into which nobody writes; name a file"):
        load(file=tmp_path / "pipe")


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(InvalidValueError) as caught:
        load(file=conf(tmp_path, text))
    return str(caught.value).removeprefix(f"{tmp_path}/broker.conf")


def test_a_misspelt_name_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    assert refused(tmp_path, "# x\nbrokerServicPort=1\n") == (
        ":2: brokerServicPort: no such setting; did you mean brokerServicePort?"
    )
    assert "did you mean authenticationEnabled?" in refused(tmp_path, "authentcationEnabled=true")
    with pytest.raises(InvalidValueError, match=r"^--set zzzzzzz: no such setting; docs/settings\.md lists"):
        load(flags=["zzzzzzz=1"])


def test_names_of_other_versions_and_plugins_are_noticed(tmp_path: Path) -> None:
    """Conf files of clients' suites carry names that Pulsar 4.0.8 has dropped; Pulsar ignores what it does not know."""
    text = "clientLibraryVersionCheckAllowUnversioned=true\nloadBalancerNamespaceBundleSplitIntervalMinutes=15\nzz=1\n"
    loaded = load(file=conf(tmp_path, text), environment={"PULSAR_PREFIX_yy": "1"})
    assert loaded.settings == Settings()
    assert loaded.notices == (
        f"{tmp_path}/broker.conf: neither Apache Pulsar 4.0.8 nor magnetar has these settings, and they have no "
        "effect: clientLibraryVersionCheckAllowUnversioned, loadBalancerNamespaceBundleSplitIntervalMinutes, zz",
        "environment: neither Apache Pulsar 4.0.8 nor magnetar has these settings, and they have no effect: yy",
    )


def test_the_notice_about_unknown_names_is_short(tmp_path: Path) -> None:
    text = "\n".join(f"{'x' * 1_000}{number}=1" for number in range(1000))
    (notice,) = load(file=conf(tmp_path, text)).notices
    assert notice.endswith(" and 992 more")
    assert len(notice) < 2500


def test_an_unknown_name_that_sounds_protective_is_refused(tmp_path: Path) -> None:
    assert "by its name it protects" in refused(tmp_path, "kerberosAuthRequired=true")
    assert "neither" in load(file=conf(tmp_path, "kerberosAuthRequired=false\nmyPluginToken=\n")).notices[0]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("brokerServicePort=x", "brokerServicePort: 'x' is not accepted; expected a whole number from 0 to 65535"),
        (
            "brokerServicePort=65536",
            "brokerServicePort: '65536' is not accepted; expected a whole number from 0 to 65535",
        ),
        ("journalSyncData=yes", "journalSyncData: 'yes' is not accepted; expected true or false"),
        (
            "allowAutoTopicCreationType=Partitioned",
            "allowAutoTopicCreationType: 'Partitioned' is not accepted; expected one of partitioned, non-partitioned",
        ),
        ("maxMessageSize=0", "maxMessageSize: '0' is not accepted; expected a whole number from 1 to 2147473407"),
    ],
)
def test_values_outside_their_bounds_are_refused(tmp_path: Path, line: str, reason: str) -> None:
    assert refused(tmp_path, line) == ":1: " + reason


def test_protection_is_not_ignored(tmp_path: Path) -> None:
    assert "cannot protect the broker that way yet" in refused(tmp_path, "httpRequestsLimitEnabled=true")
    assert len(load(file=conf(tmp_path, "httpRequestsLimitEnabled=false")).notices) == 1


def test_unreadable_sources_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="cannot read the configuration"):
        load(file=tmp_path / "missing.conf")
    with pytest.raises(InvalidValueError, match=r"--set a text that is not shown.*: expected name=value"):
        load(flags=["x"])
    with pytest.raises(
        InvalidValueError, match=r"environment variable PULSAR_PREFIX_journalSyncDat: journalSyncDat: no"
    ):
        load(environment={"PULSAR_PREFIX_journalSyncDat": "1"})


def test_the_advertised_host_follows_the_addresses() -> None:
    assert Settings().advertised_host == "127.0.0.1"
    assert Settings(bindAddress="0.0.0.0").advertised_host == "localhost"
    assert Settings(advertisedAddress="broker.example").advertised_host == "broker.example"


def test_every_default_is_pulsars_or_explained() -> None:
    for field in dataclasses.fields(Settings):
        known = pulsar_settings().get(field.name)
        pulsars = known.default if known else ""
        ours = "" if field.default is None else str(field.default)
        if ours.lower() != pulsars.lower():
            assert "Pulsar" in about(field.name).doc or not pulsars or "BookKeeper" in about(field.name).doc, field.name


def test_every_setting_accepts_its_own_default() -> None:
    flags = [f"{field.name}={field.default}" for field in dataclasses.fields(Settings) if field.default is not None]
    assert load(flags=flags).settings == Settings()
    ours = {
        "webServiceAllowedHosts",
        "livenessCheckSeconds",
        "brokerDeduplicationStreamInactivityTimeoutMinutes",
        "logFormat",
        "offloadUrl",
        "backupDirectory",
        "spaceReclaimBytesPerSecond",
        "auditLogFile",
        "auditLogFiles",
        "auditLogMaxSizeMB",
        "tlsClientRoleField",
        "tokenRevocationListFile",
    }
    assert set(setting_types()) - set(pulsar_settings()) == ours, "settings of our own"


def test_docs_settings_md_is_up_to_date() -> None:
    assert (ROOT / "docs" / "settings.md").read_text("utf-8") == settings_page(), (
        "run: python -m magnetar.config.settings_page > docs/settings.md"
    )


def test_properties_format() -> None:
    text = "# c\n! c\n\n a = 1 \nb:2\nc 3\nd\n e\\=x=4\\\n    5\nf=\\u00e9\\t\\q\ng=a\\\\\nh=C:\\\\x\ni=last\\"
    assert list(read_properties(text)) == [
        Property(4, "a", "1"),
        Property(5, "b", "2"),
        Property(6, "c", "3"),
        Property(7, "d", ""),
        Property(8, "e=x", "45"),
        Property(10, "f", "é\tq"),
        Property(11, "g", "a\\"),
        Property(12, "h", "C:\\x"),
        Property(13, "i", "last"),
    ]


def test_a_setting_that_stands_twice_with_two_values_is_named_with_both_lines(tmp_path: Path) -> None:
    text = "maxTenants=1\n\nmaxTenants=2\nclusterName=a\nclusterName=a\nclusterName=\nmaxTenants=3\n"
    file = conf(tmp_path, text + "basicAuthConf=data:secret\nbasicAuthConf=data:other\n")
    loaded = load(file=file, environment={"maxTenants": "4"}, flags=["maxTenants=5"])
    assert loaded.settings.maxTenants == 5
    assert loaded.notices == tuple(
        f"{file}:{second}: {name} has another value than at {file}:{first}; this one counts, remove one"
        for name, first, second in (("maxTenants", 1, 3), ("maxTenants", 3, 7), ("basicAuthConf", 8, 9))
    )
    assert load(flags=["maxTenants=1", "maxTenants=2"]).notices == (), "scripts override their own flags"


@pytest.mark.parametrize("names", [("brokerServicePort", "webServicePort"), ("webServicePort", "webServicePortTls")])
def test_two_interfaces_cannot_have_one_port(names: tuple[str, str]) -> None:
    first, second = names
    with pytest.raises(InvalidValueError, match=f"{second}: 7000 is {first} already; each interface"):
        load(flags=[f"{first}=7000", f"{second}=7000", "brokerServicePortTls=7001"])
    load(flags=[f"{first}=0", f"{second}=0", "brokerServicePortTls=0"])
