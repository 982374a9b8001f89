"""What a job does with the object that it wrote when the broker does not adopt it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from magnetar.client.rest import RestRefusedError
from magnetar.jobs import offload
from magnetar.jobs.offload import CopyTask, copy
from magnetar.jobs.reader.topic_ledgers import LedgerInfo


class Broker:
    """Says no."""

    def __init__(self, status: int) -> None:
        self._status = status

    def ask(self, method: str, path: str, body: object) -> Any:
        raise RestRefusedError(self._status, "no")


@pytest.mark.parametrize(
    ("status", "stays"),
    [(409, False), (404, False), (500, True), (504, True), (401, True), (403, True), (307, True), (429, True)],
)
def test_only_what_the_broker_decided_against_is_deleted(
    status: int, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy may answer 504 while the broker goes on to record the object. Who refuses the asker (whose token ran out)
    has not looked at the object, which an earlier attempt may have had adopted."""

    def written(*_: object) -> None:
        raise FileExistsError("by an earlier attempt")

    monkeypatch.setattr(offload, "write_copy", written)
    path = tmp_path / "a" / "ledger-1.parquet"
    path.parent.mkdir()
    path.write_bytes(b"whole")
    info = LedgerInfo(1, 0, 9, 9, 9, 900, 0, 1, 2)
    rest = cast("Any", Broker(status))
    work = CopyTask(rest, "persistent://public/default/t", "", info, (), f"file://{tmp_path}", "a/ledger-1.parquet")
    outcome = copy(work)
    assert "no" in outcome.refused
    assert path.exists() is stays
    assert (work.name in outcome.refused) is stays


def test_the_halves_of_a_job_that_was_ended_are_deleted(tmp_path: Path) -> None:
    """A whole copy stays: the broker may be about to adopt it."""
    info = LedgerInfo(1, 0, 9, 9, 9, 900, 0, 1, 2)
    names = [f"a/ledger-{number}.parquet" for number in range(3)]
    rest = cast("Any", Broker(409))
    work = [CopyTask(rest, "persistent://public/default/t", "", info, (), f"file://{tmp_path}", name) for name in names]
    for name in (names[0], f"{names[1]}.new", "a/another.parquet.new"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    offload.clear(work)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["another.parquet.new", "ledger-0.parquet"]
