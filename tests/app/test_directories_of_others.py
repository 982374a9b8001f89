"""A directory without a file of a broker is not called whole, and nothing in it is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from magnetar.app.main import app
from magnetar.model.errors import PersistenceError
from magnetar.storage.backup.data_directories import back_up_directory, restore_directory


def _ledgers(directory: Path) -> Path:
    """A directory ``ledgers`` as a book-keeper has it."""
    ledgers = directory / "ledgers"
    ledgers.mkdir(mode=0o755)
    (ledgers / "2024.csv").write_text("books")
    return ledgers


@pytest.mark.parametrize("command", [["verify"], ["rescue", "metadata"], ["rescue", "metadata", "--accept"]])
def test_a_check_refuses_it(command: list[str], tmp_path: Path) -> None:
    ledgers = _ledgers(tmp_path)
    modes = tmp_path.stat().st_mode, ledgers.stat().st_mode
    result = CliRunner().invoke(app, [*command, str(tmp_path)])
    assert result.exit_code == 1
    assert f"{ledgers} holds nothing of a broker" in result.output and "is mounted" in result.output
    assert [path.name for path in ledgers.iterdir()] == ["2024.csv"]
    assert (tmp_path.stat().st_mode, ledgers.stat().st_mode) == modes


def test_no_backup_is_made_of_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    _ledgers(tmp_path / "data")
    with pytest.raises(PersistenceError, match="holds nothing of a broker"):
        back_up_directory(str(tmp_path / "data"), str(tmp_path / "backup"))
    assert not (tmp_path / "backup").exists()


def test_a_data_directory_is_no_backup_to_restore(tmp_path: Path) -> None:
    (tmp_path / "data" / "ledgers").mkdir(parents=True)
    with pytest.raises(PersistenceError, match="is a data directory and no backup"):
        restore_directory(str(tmp_path / "data"), str(tmp_path / "restored"))
    assert not (tmp_path / "restored").exists()
