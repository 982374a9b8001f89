"""No credential in any log, error, metric or file: after a run, everything that its tests left is searched.

Searched are captured output and logs of every test, warnings, and all files in the run's temporary directory: logs of
brokers, metrics pages, checkpoints, plans, data directories. Looked for are the mark of minted secrets in any encoding,
JSON Web Tokens and private keys by their form, and the fixed keys of other tests. Files for secrets have one of the
`HOLDERS`' names, or stand in a directory ``secrets`` (`minted_secrets.kept`). A finding fails the run.
"""

from __future__ import annotations

import base64
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.minted_secrets import MARK
from tests.support.signed_tokens import OTHER_SECRET, SECRET

HOLDERS: Final = (".pem", ".key", ".p12", ".jks", ".der", ".jwt", ".token", ".htpasswd")
_FOREIGN: Final = frozenset({"reserve"})
"""Files of a broker that hold nothing but space."""
_SHOWN: Final = 20
_WHOLE: Final = 1 << 20


class Finding(NamedTuple):
    """One place where a secret stands; what it is, not which."""

    where: str
    kind: str


def _encodings(mark: bytes) -> Iterator[bytes]:
    yield mark
    yield mark.hex().encode()
    for lead in range(3):
        # Bytes before the mark shift its base64; what they have in common with it is left out at both ends.
        text = base64.b64encode(b"\0" * lead + mark)
        first, last = (0, 2, 3)[lead], -4 if (lead + len(mark)) % 3 else None
        yield text[first:last]


_KINDS: Final[dict[bytes, str]] = {
    **dict.fromkeys(_encodings(MARK.encode()), "a minted secret"),
    **{base64.b64encode(key)[:40]: "a key of tests" for key in (SECRET, OTHER_SECRET)},
    b"IBADANBgkqhkiG9w0BAQEFAAS": "a private RSA key",
    b"AgEAMBMGByqGSM49AgEGCCqGSM49": "a private EC key",
    b"PRIVATE KEY-----\n": "a private key",
    b"PRIVATE KEY-----\\n": "a private key",
}
_TOKEN: Final = re.compile(rb"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}")


def secrets_in(data: bytes | mmap.mmap) -> set[str]:
    """The kinds of secrets that stand in some bytes."""
    found = {kind for text, kind in _KINDS.items() if data.find(text) >= 0}
    if data.find(b"eyJ") >= 0 and _TOKEN.search(data):
        found.add("a token")
    return found


def search_files(directory: Path) -> Iterator[Finding]:
    """Search all files below a directory but those that are there for secrets."""
    for place, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if name != "secrets"]
        for name in names:
            path = Path(place, name)
            if not name.endswith(HOLDERS) and name not in _FOREIGN and path.is_file() and not path.is_symlink():
                yield from (Finding(str(path), kind) for kind in sorted(_in_file(path)))


def _in_file(path: Path) -> set[str]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= _WHOLE:
                return secrets_in(file.read())
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return secrets_in(data)
    except OSError:
        return set()


_findings: Final[dict[Finding, None]] = {}
"""Each once, in their order: reports of one test repeat what it has printed."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Search what a test has printed and logged, and what it says if it failed."""
    texts = [*report.sections, ("error", report.longreprtext)]
    for title, text in texts:
        for kind in sorted(secrets_in(text.encode(errors="replace"))):
            _findings[Finding(f"{report.nodeid}: {title}", kind)] = None


def pytest_warning_recorded(warning_message: Warning, nodeid: str) -> None:
    """Search warnings."""
    for kind in sorted(secrets_in(str(warning_message).encode(errors="replace"))):
        _findings[Finding(f"{nodeid}: a warning", kind)] = None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Search the files that the run has left; a run with a finding has failed."""
    factory = getattr(session.config, "_tmp_path_factory", None)
    if factory is not None and factory._basetemp is not None:
        _findings.update(dict.fromkeys(search_files(factory._basetemp)))
    if _findings:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where secrets stand."""
    if _findings:
        terminalreporter.section("secrets were left behind", red=True)
        for found in list(_findings)[:_SHOWN]:
            terminalreporter.line(f"{found.kind} stands in {found.where}")
        if len(_findings) > _SHOWN:
            terminalreporter.line(f"and {len(_findings) - _SHOWN} more")
