"""Clients that others' generators make of our description work against a running broker.

openapi-python-client and openapi-generator, which is a Java program, stand in `.venv-generators` (made by `make test`).
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from magnetar.admin_api.description import document
from tests.support.real_broker import RealBroker, run_on_broker

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests/support"
GENERATORS = ROOT / ".venv-generators/bin"


def _described(directory: Path) -> Path:
    path = directory / "openapi.json"
    path.write_text(json.dumps(document("1")))
    return path


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_openapi_python_client(tmp_path: Path) -> None:
    if not GENERATORS.exists():
        pytest.skip("there is no .venv-generators: python3 tools/dev.py test makes it")
    generator, made = GENERATORS / "openapi-python-client", tmp_path / "generated"
    _run(generator, "generate", "--path", _described(tmp_path), "--output-path", made, "--meta", "none",
         "--fail-on-warning", "--config", _without_formatting(tmp_path))  # fmt: skip

    _drive(tmp_path, GENERATORS / "python", "generated_client_program.py", tmp_path)


@pytest.mark.slow
def test_openapi_generator(tmp_path: Path) -> None:
    """Its wheel brings the jar; Java is the machine's."""
    if not GENERATORS.exists() or not shutil.which("java"):
        pytest.skip("there is no .venv-generators, or no Java: python3 tools/dev.py test makes both")
    made, described = tmp_path / "made", _described(tmp_path)
    _run(GENERATORS / "openapi-generator-cli", "generate", "-i", described, "-g", "python", "-o", made,
         "--additional-properties=packageName=generated2")  # fmt: skip
    _drive(tmp_path, Path(sys.executable), "generated_java_client_program.py", made)


def _drive(data: Path, python: Path, program: str, made: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        url = broker.node.broker.service.web_service_url
        await asyncio.to_thread(_run, python, PROGRAMS / program, url, made)

    run_on_broker(data / "data", scenario)


def _without_formatting(directory: Path) -> Path:
    path = directory / "config.yaml"
    path.write_text("post_hooks: []\n")
    return path
