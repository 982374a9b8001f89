"""Options that read a file: a pipe into which nobody writes is refused, and never waited for; one with a writer, as of
``<(...)``, is read to its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from magnetar.cli.admin.flat_yaml import read_flat_yaml
from magnetar.cli.admin.message_commands import _schema_file
from magnetar.cli.admin.topic_commands import _lines_of
from magnetar.cli.messages.produce.sender import _content
from magnetar.cli.perf.payloads import payloads
from magnetar.cli.tokens.input import token
from magnetar.contexts.context_file import contexts_path, read_contexts
from magnetar.pipelines.declaration.secrets import resolve
from magnetar.runtime.files.pipe import opened_without_waiting, read_without_waiting
from magnetar.security.credentials.secret import Secret
from magnetar.spark.options.value_options import schema_bytes

WITHIN_SECONDS: Final = 10.0


def contexts_at(pipe: str) -> object:
    home = Path(pipe).parent / "home"
    path = contexts_path({"XDG_CONFIG_HOME": str(home)})
    path.parent.mkdir(parents=True)
    path.symlink_to(pipe)
    return read_contexts({"XDG_CONFIG_HOME": str(home)}).current


READERS: Final[dict[str, tuple[Callable[[str], object], bytes, object]]] = {
    "--token-file": (lambda pipe: token(None, stdin=False, file=Path(pipe)), b"abc\n", b"abc"),
    "--token file:": (lambda pipe: Secret.parse(f"file:{pipe}", "--token").reveal(), b"abc\n", "abc"),
    "admin, -f of topics": (_lines_of, b"t1\nt2\n", ["t1", "t2"]),
    "admin, a schema": (
        _schema_file,
        b'{"type": "STRING"}',
        {"type": "STRING", "schema": "", "properties": {}},
    ),
    "admin, flat YAML": (read_flat_yaml, b"url: x\n", {"url": "x"}),
    "produce --files": (lambda pipe: _content("--files", pipe), b"\0m", b"\0m"),
    "perf --payload-file": (lambda pipe: payloads(0, pipe, "\\n"), b"a\r\nb\n", [b"a", b"b"]),
    "contexts": (contexts_at, b"", None),
    "a secret of a pipeline": (lambda pipe: resolve(f"${{file:{pipe}}}"), b"abc\n", "abc"),
    "a schema of Spark": (schema_bytes, b"{}", b"{}"),
}


def pipe_at(path: Path) -> str:
    os.mkfifo(path)
    return str(path)


def within_seconds(read: Callable[[], object]) -> list[Any]:
    """What a reader returned or raised; empty if it still waits."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(read())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(WITHIN_SECONDS)
    return found


@pytest.mark.parametrize("name", READERS)
def test_nobody_waits_for_a_writer(name: str, tmp_path: Path) -> None:
    """They waited for ever."""
    pipe = pipe_at(tmp_path / "pipe")
    [error] = within_seconds(lambda: READERS[name][0](pipe))
    said = f"{error.strerror}" if isinstance(error, OSError) else str(error)
    assert isinstance(error, Exception) and "it is a pipe into which nobody writes; name a file" in said, error
    assert "[Errno" not in said


@pytest.mark.parametrize("name", [name for name in READERS if READERS[name][1]])
def test_a_pipe_with_a_slow_writer_is_read_to_its_end(name: str, tmp_path: Path) -> None:
    """Of a token's file what the writer had not written yet was not there."""
    read, content, expected = READERS[name]
    pipe = pipe_at(tmp_path / "pipe")
    other = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.close(other)

    def write() -> None:
        os.write(writer, content)
        os.close(writer)

    end = threading.Timer(0.2, write)
    end.start()
    try:
        [found] = within_seconds(lambda: read(pipe))
    finally:
        end.join()
    assert found == expected


def test_what_cannot_be_read_is_named_and_nothing_stays_open(tmp_path: Path) -> None:
    """The error of a directory named a number of a descriptor, and that stayed open."""
    before = len(os.listdir("/proc/self/fd"))
    for path, kind in ((tmp_path, IsADirectoryError), (tmp_path / "gone", FileNotFoundError)):
        with pytest.raises(kind) as caught:
            opened_without_waiting(path)
        assert os.fspath(caught.value.filename) == str(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_empty_file_is_no_pipe(tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.touch()
    assert read_without_waiting(file) == b""
