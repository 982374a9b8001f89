"""The revocation list: what it revokes, when it is read again, and what a faulty one does."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from pathlib import Path

import pytest

from magnetar.model.errors import AuthenticationError, InvalidValueError
from magnetar.runtime.clock import SystemClock
from magnetar.security.authentication.provider import Credentials
from magnetar.security.authentication.revocation_list import RevocationList, parse
from magnetar.security.authentication.service import AuthenticationService
from magnetar.security.identity import Identity

DIGEST = "ab" * 32
TOKEN = Identity("the role", "token", None, "4711", "alice", DIGEST)


@pytest.mark.parametrize(
    ("text", "revoked"),
    [
        ("jti 4711", True),
        ("  jti   4711  \r\n", True),
        ("sub alice", True),
        (f"sha256 {DIGEST}", True),
        (f"sha256 {DIGEST.upper()}", True),
        ("# jti 4711", False),
        ("", False),
        ("jti 471\njti 47110\nsub alic\nsub ALICE\nsub the role", False),
        ("jti alice\nsub 4711", False),
    ],
)
def test_entries(text: str, revoked: bool) -> None:
    found = parse(text)
    assert found.include(TOKEN) == revoked
    assert found.faults == ()


def test_other_methods() -> None:
    """Without claims the role is what an entry names, or the certificate."""
    certificate = Identity("CN of it", "tls", None, None, None, DIGEST)
    assert parse("sub CN of it").include(certificate)
    assert parse(f"sha256 {DIGEST}").include(certificate)
    user = Identity("bob", "basic")
    assert parse("sub bob").include(user)
    assert not parse("sub alice\njti None\n").include(user)


@pytest.mark.parametrize(("subject", "revoked"), [(None, True), ("carol", False)])
def test_without_a_subject_each_of_several_roles_counts(subject: str | None, revoked: bool) -> None:
    token = Identity("carol", "token", subject=subject, other_roles=("alice", "bob"))
    assert parse("sub bob").include(token) is revoked
    assert parse("sub carol").include(token)


@pytest.mark.parametrize("line", ["alice", "sub", "sub ", "user alice", "sha256 12", f"sha256 {'g' * 64}", "\0"])
def test_lines_that_are_no_entries(tmp_path: Path, line: str) -> None:
    (fault,) = parse(f"jti 1\n\n{line}").faults
    assert fault.startswith("line 3 is no entry; expected jti ID")
    file = tmp_path / "revoked"
    file.write_text(f"jti 1\n{line}\n")
    with pytest.raises(InvalidValueError, match=r"tokenRevocationListFile: .*revoked: line 2 is no entry"):
        RevocationList(str(file))


def changed(revoked: RevocationList, file: Path, text: str) -> bool:
    """Whether a new content changed something, at the first look or at the second one, at which it has settled."""
    written(file, text)
    looks = [asyncio.run(revoked.refresh()) for _ in range(2)]
    return any(looks)


def written(file: Path, text: str) -> None:
    before = file.stat().st_mtime_ns if file.exists() else 0
    file.write_text(text)
    os.utime(file, ns=(before + 1000, before + 1000))


def test_it_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A faulty line drops no older entry; a list that is gone goes on counting; each trouble is reported once."""
    file = tmp_path / "revoked"
    file.write_text("sub alice\n")
    revoked = RevocationList(str(file))
    assert TOKEN in revoked
    assert not asyncio.run(revoked.refresh())
    assert changed(revoked, file, "jti 1\n")
    assert TOKEN not in revoked
    assert not changed(revoked, file, "# nothing new\njti 1\n")
    assert changed(revoked, file, "sub alice\nsubbob\n")
    assert TOKEN in revoked
    assert len(revoked) == 2
    file.unlink()
    for _ in range(2):
        assert not asyncio.run(revoked.refresh())
    assert TOKEN in revoked
    file.write_bytes(b"\xff\xff")
    os.utime(file, ns=(1, 1))
    assert not asyncio.run(revoked.refresh())
    assert TOKEN in revoked
    assert changed(revoked, file, "")
    assert len(revoked) == 0
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert ["cannot be read" in one for one in said] == [False, True, True]
    assert "line 2 is no entry" in said[0]


def test_a_fault_that_comes_back_after_it_was_repaired_is_reported_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "revoked"
    file.write_text("sub alice\n")
    revoked = RevocationList(str(file))
    faulty = "sub alice\nsubbob\n"
    for text in ("sub alice\n# and then\nsub bob\nsub\n", faulty, "sub alice\n", faulty):
        changed(revoked, file, text)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert [re.findall(r"line \d", one) for one in said] == [["line 4"], ["line 2"], ["line 2"]]


@pytest.mark.parametrize("half", ["", "jti 1\n", "sub"])
def test_a_list_that_is_being_written_forgets_nobody(tmp_path: Path, half: str) -> None:
    """Who writes in place truncates first, and a look comes just then."""
    file = tmp_path / "revoked"
    file.write_text("sub alice\n")
    revoked = RevocationList(str(file))
    written(file, half)
    asyncio.run(revoked.refresh())
    assert TOKEN in revoked
    assert ("jti 1" in half) is (len(revoked) == 2), "what is new counts at once"
    written(file, "jti 1\nsub alice\n")
    asyncio.run(revoked.refresh())
    assert TOKEN in revoked
    assert not asyncio.run(revoked.refresh()) and len(revoked) == 2


def test_an_emptied_list_counts_at_the_next_look(tmp_path: Path) -> None:
    file = tmp_path / "revoked"
    file.write_text("sub alice\n")
    revoked = RevocationList(str(file))
    written(file, "")
    assert not asyncio.run(revoked.refresh()) and TOKEN in revoked
    assert asyncio.run(revoked.refresh()) and TOKEN not in revoked
    assert not asyncio.run(revoked.refresh())


def test_a_list_that_cannot_be_read_refuses_the_start(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(InvalidValueError, match=f"tokenRevocationListFile: cannot read {path}"):
            RevocationList(str(path))


def test_who_comes_without_credentials_can_be_revoked_too(tmp_path: Path) -> None:
    """Open connections were closed, and new ones let in."""
    file = tmp_path / "revoked"
    file.write_text("sub guest\n")

    async def come(anonymous: str) -> Identity:
        service = AuthenticationService([], SystemClock(), anonymous, revocation_list=RevocationList(str(file)))
        return await service.authenticate("none", Credentials())

    assert asyncio.run(come("visitor")).role == "visitor"
    with pytest.raises(AuthenticationError, match="anonymousUserRole was revoked"):
        asyncio.run(come("guest"))
