"""Files with keys: for their owner only, and never instead of another file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from magnetar.model.errors import InvalidValueError


class KeyFile(NamedTuple):
    """A file to be written."""

    path: Path
    content: bytes
    mode: int


def write(files: Sequence[KeyFile], *, overwrite: bool) -> None:
    """Write all of them or none. Raises InvalidValueError if one is there already, OSError."""
    if not overwrite:
        for file in files:
            if os.path.lexists(file.path):
                raise InvalidValueError(
                    f"{file.path} exists already; --overwrite replaces it, and what it signed is lost"
                )
    if len({os.path.abspath(file.path) for file in files}) < len(files):
        raise InvalidValueError("both keys would be written to the same file")
    drafts: list[Path] = []
    try:
        for file in files:
            drafts.append(_draft(file))
        for file, draft in zip(files, drafts, strict=True):
            if overwrite:
                draft.replace(file.path)
            else:
                os.link(draft, file.path)
    except FileExistsError as error:
        raise InvalidValueError(f"{error.filename2 or error.filename} has come into being meanwhile") from error
    finally:
        for draft in drafts:
            with suppress(FileNotFoundError):
                draft.unlink()


def _draft(file: KeyFile) -> Path:
    """The content beside its place."""
    draft = file.path.with_name(f".{file.path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, file.mode)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(file.content)
    except BaseException:
        draft.unlink()
        raise
    return draft
