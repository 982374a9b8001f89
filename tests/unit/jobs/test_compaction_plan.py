"""What a compaction job finds in the broker's directory, which goes on meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magnetar.jobs.compaction import job
from magnetar.model.errors import ConflictError

TOPIC = "persistent://public/default/t"


def test_a_view_that_another_compaction_has_replaced_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker's answer and its directory are of two moments."""
    answer = {"url": "file:///x", "start": 0, "horizon": 5, "log": 7, "view": "compacted/t/3"}
    rest: Any = SimpleNamespace(url="http://broker", ask=lambda *_: answer)
    logs = {TOPIC: SimpleNamespace(id=7), "compacted/t/4": SimpleNamespace(id=9)}
    monkeypatch.setattr(job, "read_directory", lambda _: SimpleNamespace(logs=logs))
    with pytest.raises(ConflictError, match="another run meanwhile; try again"):
        job.plan(rest, Path("/data"), TOPIC)
