"""docs/locked-broker.md, every line as an operator types it, at a broker with the page's settings on free ports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from magnetar.config.properties import read_properties
from tests.support.live_broker import LiveBroker, free_port
from tests.support.snippets import ROOT, snippets

PAGE = [one for one in snippets() if one.file == "docs/locked-broker.md"]


def typed(line: str, directory: Path, more: str = "") -> tuple[int, str, str]:
    """Type a line in a shell that has the command; return its exit code and what it printed and said."""
    done = subprocess.run(
        ["sh", "-c", f'magnetar() {{ "$PYTHON" -m magnetar.app.main "$@"; }}; {line} {more}'],
        cwd=directory,
        env={
            **os.environ,
            "PYTHON": sys.executable,
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", ""))),
            "XDG_CONFIG_HOME": str(directory / "config"),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_each_step(tmp_path: Path) -> None:
    lines = [line for one in PAGE if one.language == "sh" for line in one.text.splitlines() if line]
    (settings, answer) = (one.text for one in PAGE if not one.language)
    for line in lines[: (start := lines.index("magnetar standalone --conf broker.conf"))]:
        assert typed(line, tmp_path)[0] == 0, line
    web = free_port()
    said = {one.key: one.value for one in read_properties(settings)}
    said["tokenSecretKey"] = str(tmp_path / said["tokenSecretKey"])
    broker = LiveBroker(tmp_path, webServicePort=web, **said)
    broker.start()
    try:
        for line in lines[start + 1 :]:
            adds = line.startswith("magnetar contexts add")
            place = f"--web-url http://127.0.0.1:{web} --service-url {broker.url}" if adds else ""
            code, printed, wrong = typed(line.partition("  #")[0], tmp_path, place)
            if line.endswith("# refused"):
                assert code != 0 and "not authorized" in wrong, (line, wrong)
            elif "permissions explain" in line:
                assert (code, printed) == (3, answer)
            else:
                assert code == 0, (line, printed, wrong)
    finally:
        broker.end()
