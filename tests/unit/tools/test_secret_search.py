"""The search for secrets after a run: it finds what is planted, in every form, and fails the run."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.minted_secrets import kept, password, signing_key, token
from tests.support.secret_search import search_files, secrets_in
from tests.support.signed_tokens import SECRET, ec_key, inline, private_der, rsa_key

ROOT = Path(__file__).resolve().parents[3]
PLANTED = """
import logging
import sys
from tests.support.minted_secrets import kept, password, signing_key, token


def test_log():
    logging.getLogger("x").warning("login with %s", token("app", signing_key()))


def test_output():
    print(f"Authorization: Basic {password()}")


def test_file(tmp_path):
    kept(tmp_path, "password", password())
    (tmp_path / "broker.log").write_text(f"refused {password()}")


def test_error():
    raise ValueError(token("app", signing_key()))
"""
CLEAN = """
from tests.support.minted_secrets import kept, password


def test_nothing(tmp_path):
    kept(tmp_path, "password", password())
    print("fine")
"""


@pytest.fixture
def apart() -> Iterator[Path]:
    """A directory that the search after this very run does not see."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.mark.parametrize("lead", ["", "a", "ab", "user:", "another:"])
def test_a_minted_secret_is_known_in_every_encoding(lead: str) -> None:
    text = f"{lead}{password()}".encode()
    for form in (text, text.hex().encode(), base64.b64encode(text), base64.urlsafe_b64encode(b"=" + text)):
        assert secrets_in(b"GET / " + form + b" HTTP/1.1") == {"a minted secret"}


def test_tokens_and_keys_are_known_by_their_form() -> None:
    assert secrets_in(token("app", signing_key()).encode()) == {"a token"}
    assert secrets_in(inline(SECRET).encode()) == {"a key of tests"}
    assert secrets_in(inline(private_der(rsa_key())).encode()) == {"a private RSA key"}
    assert secrets_in(inline(private_der(ec_key())).encode()) == {"a private EC key"}
    assert secrets_in(b"-----BEGIN PRIVATE " + b"KEY-----\nMIG") == {"a private key"}
    assert not secrets_in(b"eyJhbGciOiJIUzI1NiJ9 is the head of a token, and PRIVATE KEY is two words")


def test_files_for_secrets_are_expected_and_all_others_searched(apart: Path) -> None:
    kept(apart, "password", password())
    (apart / "own.pem").write_text(password())
    assert not list(search_files(apart))
    (apart / "deep").mkdir()
    (apart / "deep" / "metrics").write_text("x" * (1 << 21) + password())
    assert [(Path(one.where).name, one.kind) for one in search_files(apart)] == [("metrics", "a minted secret")]


def test_a_run_that_leaves_a_secret_fails_and_does_not_repeat_it(apart: Path) -> None:
    """Another run of pytest, with secrets planted in a log, in output, in a file and in an error."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"}
    environment.pop("PYTEST_ADDOPTS", None)
    for text, wanted in ((PLANTED, 1), (CLEAN, 0)):
        (apart / "test_it.py").write_text(text)
        (apart / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
        command = [sys.executable, "-m", "pytest", "-q", "-k", "not error", "--basetemp", str(apart / "base")]
        command += [
            "-p",
            "no:cacheprovider",
            "-c",
            "/dev/null",
            "--rootdir",
            str(apart),
            str(apart / "test_it.py"),
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == wanted, done.stdout + done.stderr
        found = [line for line in done.stdout.splitlines() if " stands in " in line]
        if wanted:
            assert [line.partition(" stands in ")[0] for line in found] == [
                "a token",
                "a minted secret",
                "a minted secret",
            ]
            assert "Captured log call" in found[0] and "Captured stdout call" in found[1] and "broker.log" in found[2]
            assert not secrets_in(done.stdout.encode())
        else:
            assert not found
