"""References to secrets: what can be written, what is read, and that no text shows a value."""

from __future__ import annotations

import copy
import os
import pickle
import sys
from pathlib import Path

import pytest

from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials import supplier
from magnetar.security.credentials.secret import CredentialsDelayedError, CredentialsError, Secret
from tests.support.minted_secrets import kept, password


def test_a_reference_reads_what_it_names_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, file and program; a changed file counts at the next reading."""
    first, second = password(), password()
    path = kept(tmp_path, "with space", first + "\n")
    monkeypatch.setenv("A_SECRET", first)
    written = (
        "env:A_SECRET",
        "${env:A_SECRET}",
        f"file:{path}",
        f"file://{str(path).replace(' ', '%20')}",
        f"${{file:{path}}}",
        f"command:cat '{path}'",
    )
    found = [Secret.parse(text, "it") for text in written]
    assert [one.reveal() for one in found] == [first] * len(written)
    path.write_text(second)
    monkeypatch.setenv("A_SECRET", second)
    assert {one.reveal() for one in found} == {second}
    assert all(pickle.loads(pickle.dumps(one)) == one for one in found)
    assert found[0] == found[1] and repr(found[2]) == f"file:{path}"


def test_a_secret_itself_is_refused_and_not_repeated() -> None:
    value = password()
    for text in (value, f"token:{value}", f"evn:{value}", "${file:}", "env:", ""):
        with pytest.raises(InvalidValueError, match="env:NAME, file:/path or command:PROGRAM") as info:
            Secret.parse(text, "option 'token'")
        assert value not in str(info.value)
    with pytest.raises(InvalidValueError, match="not absolute"):
        Secret.parse("file:here", "option 'token'")


def test_a_given_value_is_shown_nowhere_and_stays_in_its_process() -> None:
    value = password()
    secret = Secret.given(value)
    assert secret.reveal() == value
    assert value not in f"{secret} {secret!r} {[secret]} {secret:}"
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(InvalidValueError, match="does not leave its process") as info:
            leave(secret)
        assert value not in str(info.value)


def test_what_cannot_be_read_is_named_by_its_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    value = password()
    blocked = tmp_path / "pipe"
    os.mkfifo(blocked)
    says = "import sys; sys.stderr.write(sys.argv[1]); sys.exit(3)"
    sleeper = f"command:{sys.executable} -c 'import time; print(1, flush=True); time.sleep(60)'"
    cases = (
        ("env:NOT_THERE", "no variable NOT_THERE, which env:NOT_THERE names(;|$)"),
        (f"file:{tmp_path}/none", "none cannot be read on this machine: No such file"),
        (f"file:{tmp_path}", "cannot be read on this machine"),
        ("file:/dev/zero", "more than 65536 bytes"),
        ("file:/dev/null", "is empty"),
        (f"file:{blocked}", "a pipe into which nobody writes"),
        (f"file:{kept(tmp_path, 'binary', bytes([255, 254]))}", "is no text"),
        (f"command:cat {kept(tmp_path, 'empty', '')}", "is empty"),
        (f'command:{sys.executable} -c "{says}" {value}', "ended with status 3; run it by hand"),
        ("command:/not/there", "cannot be started: No such file"),
        ("command:'", "No closing quotation"),
        ("command:cat /dev/zero", "more than 65536 bytes"),
    )
    for text, problem in cases:
        with pytest.raises(CredentialsError, match=problem) as info:
            Secret.parse(text, "it").reveal()
        assert value not in str(info.value).replace(text, "")
    monkeypatch.setattr(supplier, "_PATIENCE", 0.2)
    with pytest.raises(CredentialsDelayedError, match="did not end in time"):
        Secret.parse(sleeper, "it").reveal()
