"""What Apache Pulsar's own tools asked and 4.0.8 answered, replayed against magnetar without Java (decision 045)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_recorded_request_is_answered_as_by_apache_pulsar_or_the_difference_is_listed() -> None:
    """In a process of its own: commands of the binary protocol are its children."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.official_tools", "--replay"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " 0 to mend" in done.stdout
