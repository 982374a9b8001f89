"""The groups of the admin client are those of the table of operations, and type checkers know them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.admin_groups import MODULES, PLACE, ROOT, formatted, module

import magnetar
from magnetar.admin_client import client

PROGRAM = """\
import asyncio

from magnetar import Admin, AsyncAdmin
from magnetar.admin_api.models.policies import RetentionPolicies
from magnetar.admin_api.models.topic_stats import TopicStatistics

admin = Admin("http://localhost:8080")
names: list[str] = admin.tenants.list()
kept: RetentionPolicies | None = admin.namespaces.get_retention("public/default")
stats: TopicStatistics = admin.topics.get_stats("orders", get_precise_backlog=True)
backlog: int = stats.subscriptions["s"].msg_backlog


async def main() -> None:
    found: TopicStatistics = await AsyncAdmin().topics.get_stats("orders")


asyncio.run(main())
"""
WRONG = 'from magnetar import Admin\n\nAdmin().tenants.create("acme", 5)\nn: int = Admin().tenants.list()\n'


@pytest.mark.parametrize("name", MODULES)
def test_the_groups_are_current(name: str) -> None:
    """``python -m tools.admin_groups`` renews them."""
    assert (PLACE / f"{name}.py").read_text("utf-8") == formatted(module(awaited=MODULES[name]))


def test_the_package_gives_both_clients_when_they_are_asked_for() -> None:
    assert (magnetar.Admin, magnetar.AsyncAdmin) == (client.Admin, client.AsyncAdmin)
    code = "import sys, magnetar.app.main; print(any(n.startswith('magnetar.admin_') for n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False", "a broker imports them for nothing"


def test_a_program_is_typed(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "right.py", "wrong.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"MYPYPATH": str(ROOT / "src"), "PATH": ""}, capture_output=True, text=True
    )
    errors = [line for line in done.stdout.splitlines() if "error:" in line and "magnetar" not in line.split(":")[0]]
    assert [line.split(":")[0] for line in errors] == ["wrong.py"] * 2, done.stdout + done.stderr
