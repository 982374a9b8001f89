"""The YAML that describes a cluster: keys and plain values, one in a line; the base install has no reader of YAML."""

from __future__ import annotations

import re
from typing import Final

from magnetar.cli.admin.arguments import UsageError
from magnetar.runtime.files.pipe import read_without_waiting, why_unread

_LINE: Final = re.compile(r"([A-Za-z][A-Za-z0-9]*)\s*:(?:\s+(.*))?")
_BYTES_MAX: Final = 1 << 20


def read_flat_yaml(path: str) -> dict[str, str | bool]:
    """Return the keys and values of a file. Raises UsageError naming the line that is not flat."""
    try:
        content = read_without_waiting(path, _BYTES_MAX).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {why_unread(error)}") from None
    found: dict[str, str | bool] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        matched = _LINE.fullmatch(line.rstrip())
        if matched is None:
            raise UsageError(f"{path}, line {number}: write KEY: VALUE, without nesting")
        value = (matched[2] or "").strip()
        if value[:1] in "\"'" and len(value) > 1 and value[-1] == value[0]:
            value = value[1:-1]
        elif value[:1] in ("{", "[", "|", ">", "&", "*"):
            raise UsageError(f"{path}, line {number}: write a plain value")
        else:
            value = value.partition(" #")[0].rstrip()
        if value and value not in ("null", "~"):
            found[matched[1]] = value == "true" if value in ("true", "false") else value
    return found
