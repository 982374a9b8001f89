"""What the doctor takes from a machine, a disk and a broker."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.cli.doctor.checks import available_memory, file_system_of, java_major
from magnetar.cli.doctor.command import app
from magnetar.storage.backends.sync_probe import sync_milliseconds
from tests.support.live_broker import HOST, free_port, live_broker

RUN = CliRunner()


def test_memory_of_a_container(tmp_path: Path) -> None:
    """The limit of the container counts if it is lower than what the machine has."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    assert available_memory(tmp_path) is None
    (tmp_path / "proc/meminfo").write_text("MemTotal:       100 kB\nMemAvailable:   2048 kB\n")
    assert available_memory(tmp_path) == 2048 << 10
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    (tmp_path / "sys/fs/cgroup/memory.current").write_text("1000\n")
    assert available_memory(tmp_path) == 2048 << 10
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("5000\n")
    assert available_memory(tmp_path) == 4000


def test_the_nearest_mount_counts(tmp_path: Path) -> None:
    """The deepest mount point above the directory says which file system it is."""
    mounts = tmp_path / "mounts"
    mounts.write_text("a / ext4 rw 0 0\nb /data tmpfs rw 0 0\nc /data/my\\040disk xfs rw 0 0\nbroken\n")
    assert file_system_of(Path("/srv"), mounts) == "ext4"
    assert file_system_of(Path("/data/x"), mounts) == "tmpfs"
    assert file_system_of(Path("/data/my disk/x"), mounts) == "xfs"
    assert file_system_of(Path("/data/x"), tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" x', 21),
        ("", None),
    ],
)
def test_versions_of_java(tmp_path: Path, said: str, major: int | None) -> None:
    """Old and new ways to write a version, and a program that says none."""
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    assert java_major(str(program)) == major
    assert java_major(str(tmp_path / "missing")) is None


def test_the_probe_leaves_nothing(tmp_path: Path) -> None:
    """It writes one file and removes it, and fails where nothing can be written."""
    taken = sync_milliseconds(tmp_path, 3)
    assert len(taken) == 3 and all(one > 0 for one in taken)
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError):
        sync_milliseconds(tmp_path / "missing", 3)


def test_a_directory_that_is_to_be_made_is_looked_at_above(tmp_path: Path) -> None:
    """The doctor makes no data directory, and leaves no file."""
    done = RUN.invoke(app, ["--only", "disk", "--json", "--data", str(tmp_path / "a/b")])
    found = json.loads(done.stdout)
    assert [one["check"] for one in found] == ["disk", "fsync"] and found[1]["level"] != "failure"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("below", ["file", "file/x/y", "gone", "gone/x"])
def test_a_directory_that_cannot_be(tmp_path: Path, below: str) -> None:
    """Where a file stands, or a link that leads nowhere, no directory can be made."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    done = RUN.invoke(app, ["--only", "disk", "--json", "--data", str(tmp_path / below)])
    (found,) = json.loads(done.stdout)
    assert done.exit_code == 1 and found["level"] == "failure" and "cannot be a directory" in found["says"], found


@pytest.mark.parametrize("below", ["x" * 300, f"a/{'x' * 300}/b", "a/" * 2100])
def test_a_name_that_no_directory_can_have(tmp_path: Path, below: str) -> None:
    """It counted as missing, and the disk above it was fine."""
    done = RUN.invoke(app, ["--only", "disk", "--json", "--data", str(tmp_path / below)])
    (found,) = json.loads(done.stdout)
    assert done.exit_code == 1 and found["level"] == "failure" and "File name too long" in found["says"], found
    assert "choose another --data" in found.values(), found


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    """The disk refuses: that is a failure with a next step."""
    tmp_path.chmod(0o500)
    done = RUN.invoke(app, ["--only", "disk", "--data", str(tmp_path)])
    assert done.exit_code == 1 and "must be able to write" in done.stdout


def test_a_broker_that_runs_and_one_that_does_not(tmp_path: Path) -> None:
    """Exit 0 and 1, as a health check wants it; clocks are compared."""
    web = free_port()
    url = f"http://{HOST}:{web}"
    with live_broker(tmp_path, webServicePort=web):
        done = RUN.invoke(app, ["--only", "broker", "--only", "clock", "--admin-url", url])
        assert done.exit_code == 0 and "is ready" in done.stdout and "agree" in done.stdout, done.output
    done = RUN.invoke(app, ["--only", "broker", "--admin-url", url])
    assert done.exit_code == 1 and "magnetar standalone starts one" in done.stdout


def test_an_unknown_check_is_refused() -> None:
    """The refusal lists the names that there are."""
    done = RUN.invoke(app, ["--only", "brain"])
    assert done.exit_code == 2 and "descriptors" in done.output


def test_a_broker_that_asks_for_a_login_and_one_that_refuses_it(tmp_path: Path) -> None:
    """A login that does not work was "ok", with exit code 0."""
    key = base64.b64encode(bytes(32)).decode()
    secured = {
        "authenticationEnabled": True,
        "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": f"data:;base64,{key}",
    }
    (tmp_path / "token").write_text("a.b.c")
    web = free_port()
    asked = ["--only", "broker", "--admin-url", f"http://{HOST}:{web}"]
    with live_broker(tmp_path, webServicePort=web, **secured):
        open_ = RUN.invoke(app, asked)
        refused = RUN.invoke(app, [*asked, "--token", f"file:{tmp_path}/token"])
    assert open_.exit_code == 0 and "answers and asks for a login" in open_.output
    assert refused.exit_code == 1
    said = " ".join(refused.output.split())
    assert "answers and refuses the login: " in said and f"the token from file:{tmp_path}/token" in said
    assert "→ --token, --client-conf or --context" in said


def test_a_broker_that_was_named_is_looked_at(tmp_path: Path) -> None:
    """`doctor --admin-url URL` said "no broker to compare with" of one that did not answer, and exited with 0."""
    named = RUN.invoke(app, ["--data", str(tmp_path), "--admin-url", "http://127.0.0.1:1"])
    assert named.exit_code == 1
    assert "failure  broker       http://127.0.0.1:1 does not answer" in named.stdout
    assert " broker       " not in RUN.invoke(app, ["--data", str(tmp_path)]).stdout
