"""What a command line, the environment, contexts and ``client.conf`` say of a connection, and which counts more."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.contexts.broker_connection import ConnectionFlags, connection, connection_of_both
from magnetar.contexts.context import Context
from magnetar.contexts.context_file import Contexts, contexts_path, read_contexts
from magnetar.contexts.flags import login
from magnetar.model.errors import InvalidValueError
from tests.support.users_settings import leave_out_settings_of_the_user

TOKEN_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def _save(environment: dict[str, str], current: str | None = None, **contexts: Context) -> None:
    Contexts(contexts_path(environment), current, dict(contexts)).write()


def _conf(tmp_path: Path, text: str) -> str:
    path = tmp_path / "client.conf"
    path.write_text(text)
    return str(path)


def test_a_broker_on_this_machine_is_the_default(environment: dict[str, str]) -> None:
    found = connection(ConnectionFlags(), environment)
    assert (found.service_url, found.web_url) == ("pulsar://localhost:6650", "http://localhost:8080")
    assert found.login.credentials.method is None


def test_what_counts_more(environment: dict[str, str], tmp_path: Path) -> None:
    """Flags, then the first place that is named: context, client.conf, their variables, the context in use."""
    _save(environment, "used", used=Context(web_url="http://used:1"), named=Context(web_url="http://named:2"))
    conf = _conf(tmp_path, "webServiceUrl=http://conf:3/\nbrokerServiceUrl=pulsar://conf:4\n")
    assert connection(ConnectionFlags(), environment).web_url == "http://used:1"
    environment["PULSAR_CLIENT_CONF"] = conf
    found = connection(ConnectionFlags(), environment)
    assert (found.web_url, found.service_url, found.origin) == ("http://conf:3", "pulsar://conf:4", conf)
    environment["MAGNETAR_CONTEXT"] = "named"
    assert connection(ConnectionFlags(), environment).web_url == "http://named:2"
    assert connection(ConnectionFlags(client_conf=conf), environment).web_url == "http://conf:3"
    assert connection(ConnectionFlags(context="used"), environment).web_url == "http://used:1"
    assert connection(ConnectionFlags(context="used", web_url="http://flag:5/"), environment).web_url == "http://flag:5"
    with pytest.raises(InvalidValueError, match="either --context or --client-conf"):
        connection(ConnectionFlags(context="used", client_conf=conf), environment)


@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        (ConnectionFlags(web_url="http://other:2"), "--service-url"),
        (ConnectionFlags(service_url="pulsar://other:1"), "--admin-url"),
        (ConnectionFlags(context="half", service_url="pulsar://other:1"), "--admin-url"),
        (ConnectionFlags(context="empty", web_url="http://other:2"), "--service-url"),
        (ConnectionFlags(context="empty", web_url="http://localhost.other:8080"), "--service-url"),
        (ConnectionFlags(context="empty", service_url="pulsar://127.0.0.1:6651"), "--admin-url"),
    ],
)
def test_two_brokers_are_not_taken_for_one(environment: dict[str, str], flags: ConnectionFlags, missing: str) -> None:
    """A command that asks one interface and changes the other would change another broker."""
    contexts = {"used": Context("pulsar://used:1", "http://used:2"), "half": Context("pulsar://half:1")}
    _save(environment, "used", empty=Context(), **contexts)
    with pytest.raises(InvalidValueError, match=f"give {missing} as well, of the same broker"):
        connection_of_both(flags, environment=environment)


@pytest.mark.parametrize(
    "flags",
    [
        ConnectionFlags(),
        ConnectionFlags(web_url="http://used:2/"),
        ConnectionFlags(service_url="pulsar://used:1"),
        ConnectionFlags(service_url="pulsar://other:1", web_url="http://other:2"),
        ConnectionFlags(context="half", web_url="http://other:2"),
        ConnectionFlags(context="empty", service_url="pulsar://localhost:6650"),
        ConnectionFlags(context="empty", service_url="pulsar://127.0.0.1:6650/"),
        ConnectionFlags(context="empty", web_url="http://[::1]:8080"),
    ],
)
def test_one_broker_by_both_its_addresses(environment: dict[str, str], flags: ConnectionFlags) -> None:
    contexts = {"used": Context("pulsar://used:1", "http://used:2"), "half": Context("pulsar://half:1")}
    _save(environment, "used", empty=Context(), **contexts)
    assert connection_of_both(flags, environment=environment) == connection(flags, environment)


def test_the_login_of_each_place(environment: dict[str, str], tmp_path: Path) -> None:
    conf = _conf(tmp_path, f"authPlugin={TOKEN_PLUGIN}\nauthParams=token:from-the-file\n")
    environment["PULSAR_TOKEN"] = "unused"
    by_file = connection(ConnectionFlags(client_conf=conf), environment).login
    assert by_file.credentials.data() == b"from-the-file"
    by_flag = connection(
        ConnectionFlags(client_conf=conf, auth_plugin=TOKEN_PLUGIN, auth_params="token:from-the-flag"), environment
    ).login
    assert by_flag.credentials.data() == b"from-the-flag"
    by_variable = connection(ConnectionFlags(), environment).login
    assert str(by_variable.credentials).find("env:PULSAR_TOKEN") >= 0


def test_a_secret_of_a_flag_is_neither_shown_nor_sent(environment: dict[str, str]) -> None:
    flags = ConnectionFlags(auth_plugin=TOKEN_PLUGIN, auth_params="token:very-secret-text")
    found = connection(flags, environment)
    assert "very-secret-text" not in repr(found)
    with pytest.raises(Exception, match="reference"):
        pickle.dumps(found.login)


def test_parameters_without_the_class_that_reads_them_are_refused(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError, match="--auth-plugin"):
        connection(ConnectionFlags(auth_params="token:x"), environment)


@pytest.mark.parametrize(
    "url", ["localhost:8080", "pulsar://localhost:6650", "http://", "http://h:notaport", "http://user:secret@h:1"]
)
def test_a_web_url_that_is_none_is_refused(environment: dict[str, str], url: str) -> None:
    with pytest.raises(InvalidValueError, match="http://host:"):
        connection(ConnectionFlags(web_url=url), environment)


def test_an_unknown_context_names_those_that_there_are(environment: dict[str, str]) -> None:
    _save(environment, one=Context(), two=Context())
    with pytest.raises(InvalidValueError, match="there are one, two"):
        connection(ConnectionFlags(context="three"), environment)


def test_contexts_are_written_privately_and_whole(environment: dict[str, str]) -> None:
    """Every value comes back, nobody else may read the file, and nothing is left beside it."""
    context = Context(
        service_url="pulsar+ssl://b:6651",
        web_url="https://b:8443",
        token='command:print "a\\b"',
        trust="/é/ca.pem",
        allow_insecure=True,
        verify_host_name=False,
    )
    _save(environment, "a.b", **{"a.b": context})
    path = contexts_path(environment)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["contexts.toml"]
    found = read_contexts(environment)
    assert (found.current, found.by_name) == ("a.b", {"a.b": context})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("current = [", "is no TOML"),
        ("current = 'gone'", "which is no context"),
        ("[contexts.a]\nwebb_url = 'x'", "webb_url is not known"),
        ("[contexts.a]\nallow_insecure = 'yes'", "must be true or false"),
        ("[contexts.a]\ntoken = 'eyJhbGciOi'", "must be a reference"),
        ("[contexts.a]\nauth_plugin = 'token'\nauth_params = 'token:eyJhbGci'", "must be a reference"),
        ("[contexts.'../x']\n", "is no name of a context"),
        ("other = 1", "other is not known"),
        ("contexts = 1", "is no table"),
    ],
)
def test_a_file_that_is_wrong_is_refused_and_shows_no_secret(environment: dict[str, str], text: str, said: str) -> None:
    path = contexts_path(environment)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InvalidValueError, match=said) as refused:
        read_contexts(environment)
    assert "eyJhbGci" not in str(refused.value)


def test_tests_have_no_connection_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine where a context was in use, tests of commands asked its broker, and hundreds failed."""
    (tmp_path / "magnetar").mkdir()
    (tmp_path / "magnetar" / "contexts.toml").write_text(
        'current = "mine"\n[contexts.mine]\nweb_url = "http://mine:1"\n'
    )
    (tmp_path / "pip.conf").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MAGNETAR_CONTEXT", "mine")
    assert connection(ConnectionFlags()).web_url == "http://mine:1"
    leave_out_settings_of_the_user()
    assert connection(ConnectionFlags()).origin == "the defaults"
    assert Path(os.environ["XDG_CONFIG_HOME"], "pip.conf").exists()


def test_a_login_may_name_files_of_the_current_directory(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the example of `permissions self-test` does, which was refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    flags = ConnectionFlags(auth_plugin="token", auth_params="file:admin.token")
    for found in (
        connection(ConnectionFlags(token="file:admin.token"), environment).login,
        connection(flags, environment).login,
        login("file:admin.token"),
    ):
        assert str(found.credentials) == f"the token from file:{tmp_path}/admin.token"
    for found in (connection(ConnectionFlags(token="file:~/t"), environment).login, login("file:~/t")):
        assert str(found.credentials) == "the token from file:/home/me/t"


def test_settings_of_tests_that_were_killed_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run under `timeout`, and one that judged mutants, left a directory in /tmp on a machine with contexts."""
    (tmp_path / "conf" / "magnetar").mkdir(parents=True)
    (tmp_path / "conf" / "magnetar" / "contexts.toml").write_text("")
    (tmp_path / "conf" / "pip").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    program = (
        "import os, sys; from tests.support.users_settings import leave_out_settings_of_the_user as leave_out;"
        "leave_out(); print(os.environ['XDG_CONFIG_HOME'], flush=True); sys.stdin.read() or os._exit(0)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)}

    def begun() -> tuple[subprocess.Popen[str], Path]:
        run = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        return run, Path(run.stdout.readline().strip())

    killed, left = begun()
    killed.communicate()
    assert left.exists()
    living, kept = begun()
    ended, own = begun()
    assert [left.exists(), kept.exists(), own.exists()] == [False, True, True]
    ended.communicate("in order")
    living.communicate("in order")
    assert list((tmp_path / "tmp").iterdir()) == []
    assert (tmp_path / "conf" / "pip").exists()


def test_a_file_behind_a_link_is_the_one_that_the_system_finds(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``link/..`` is where the link leads to; by its letters alone another file was read, where one was there."""
    there = tmp_path / "there"
    (there / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(there / "inner")
    (there / "client.conf").write_text("brokerServiceUrl=pulsar://there:1\n")
    (tmp_path / "client.conf").write_text("brokerServiceUrl=pulsar://here:1\n")
    monkeypatch.chdir(tmp_path)
    found = connection(ConnectionFlags(client_conf="link/../client.conf"), environment)
    assert found.service_url == "pulsar://there:1"
    assert login(client_conf="link/../client.conf").client_conf == str(tmp_path / "link/../client.conf")


def test_files_of_tls_may_be_in_the_home_directory(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell leaves the tilde of ``--tls-cert-file=~/x``; only that of the trusted certificates was expanded."""
    monkeypatch.setenv("HOME", "/home/me")
    found = connection(ConnectionFlags(trust="~/ca", certificate="~/cert", key="~/key"), environment).login
    assert (found.trust, found.certificate, found.key) == ("/home/me/ca", "/home/me/cert", "/home/me/key")
