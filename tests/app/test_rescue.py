"""``magnetar rescue metadata``: a doubt is shown, kept, and goes by an operator's word only."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.storage.backends.files import OsFileSystem
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from tests.support.at_once import at_once
from tests.support.read_only_mount import read_only


def test_a_doubt_is_shown_and_accepted(tmp_path: Path) -> None:
    files = OsFileSystem(str(tmp_path / "ledgers"))
    log = MetadataLog(files)
    for i in range(3):
        at_once(log.put(f"/policies/{i}", b'{"ttl":%d}' % i))
    at_once(log.close())
    for name in ("metadata-a", "metadata-b"):
        path = tmp_path / "ledgers" / name
        path.write_bytes(path.read_bytes().replace(b'{"ttl":1}', b'{"ttl":9}'))
    run = CliRunner().invoke
    verified = run(app, ["verify", str(tmp_path)])
    assert verified.exit_code == 1
    assert "metadata in doubt: 1 changes (2) cannot be read" in verified.stdout
    before = {path: path.read_bytes() for path in sorted((tmp_path / "ledgers").iterdir())}
    for _ in range(2):
        shown = run(app, ["rescue", "metadata", str(tmp_path)])
        assert shown.exit_code == 1
        assert "IN DOUBT: 1 changes (2)" in shown.stdout
        assert '/policies/2 {"ttl":2}' in shown.stdout
        assert 'ttl":9' not in shown.stdout
        assert {path: path.read_bytes() for path in sorted((tmp_path / "ledgers").iterdir())} == before, "it only reads"
    accepted = run(app, ["rescue", "metadata", "--accept", str(tmp_path)])
    assert (accepted.exit_code, accepted.stdout.splitlines()[-1]) == (0, "no doubt about the metadata")
    assert run(app, ["rescue", "metadata", str(tmp_path)]).exit_code == 0
    assert run(app, ["verify", str(tmp_path)]).exit_code == 0


def test_a_directory_that_can_only_be_read_is_shown(tmp_path: Path) -> None:
    """A copy of a damaged directory on a read-only disk; root writes whatever the rights are, so rights are no test."""
    files = OsFileSystem(str(tmp_path / "ledgers"))
    log = MetadataLog(files)
    at_once(log.put("/policies/1", b"{}"))
    at_once(log.close())
    with read_only(tmp_path):
        shown = CliRunner().invoke(app, ["rescue", "metadata", str(tmp_path)])
        assert (shown.exit_code, shown.stdout) == (0, "/policies/1 {}\nno doubt about the metadata\n")
        assert CliRunner().invoke(app, ["rescue", "metadata", "--accept", str(tmp_path)]).exit_code == 1


def test_a_directory_in_use_is_not_shown(tmp_path: Path) -> None:
    files = OsFileSystem(str(tmp_path / "ledgers"))
    at_once(MetadataLog(files).put("/policies/1", b"{}"))
    files.lock()
    try:
        assert CliRunner().invoke(app, ["rescue", "metadata", str(tmp_path)]).exit_code == 1
    finally:
        files.unlock()


def test_nothing_is_made_where_nothing_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["rescue", "metadata", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert not (tmp_path / "none").exists()
