"""Options that are checked where they are given: in the driver's Python, at ``load()``, ``start()`` and ``save()``.

Spark makes a Python data source in a process of its own, gives it keys in lower case only, and not whether it is for a
stream. So a mistake came as the last line of a Java trace, and for streams only once the query was running. `guard`
wraps Spark's four readers and writers once; what they are given is kept as it was written, and the checks of a format
look at it before Spark does. Sessions without `register`, and those of Spark Connect, find the same mistakes later.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

OptionCheck = Callable[[Mapping[str, str]], object]
_ARGUMENTS: Final = frozenset({"path", "schema", "mode", "outputMode", "partitionBy", "queryName"})
"""The arguments of load, save and start, which are no options."""
_CHECKPOINT: Final = "checkpointlocation"
_GIVEN: Final = "_magnetar_given"
_FORMAT: Final = "_magnetar_format"
_MODE: Final = "_magnetar_mode"


class FormatChecks(NamedTuple):
    """The checks of one format; each raises InvalidValueError. None: that use is left to Spark."""

    read: OptionCheck | None = None
    read_stream: OptionCheck | None = None
    write: OptionCheck | None = None
    write_stream: OptionCheck | None = None
    updates: Callable[[Mapping[str, str]], Callable[[Any, int], None]] | None = None
    """What ``foreachBatch`` gets for outputMode("update"), which Spark has for no Python sink."""


_checks: Final[dict[str, FormatChecks]] = {}


def guard(format: str, checks: FormatChecks) -> None:
    """Check the options of a format from now on, in this process."""
    from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

    first = not _checks
    _checks[format] = checks
    if first:
        wrap(DataFrameReader, "load", "read")
        wrap(DataStreamReader, "load", "read_stream")
        wrap(DataFrameWriter, "save", "write")
        wrap(DataStreamWriter, "start", "write_stream")


def wrap(kind: Any, last: str, use: str) -> None:
    """Let ``kind`` remember what it is given, and its method ``last`` check that first."""
    plain_format, plain_option, plain_options, plain_last = (
        getattr(kind, name) for name in ("format", "option", "options", last)
    )
    plain_mode: Any = getattr(kind, "outputMode", None)

    @functools.wraps(plain_format)
    def format(self: Any, source: str) -> Any:
        setattr(self, _FORMAT, source)
        return plain_format(self, source)

    @functools.wraps(plain_option)
    def option(self: Any, key: str, value: Any) -> Any:
        _note(self, {key: value})
        return plain_option(self, key, value)

    @functools.wraps(plain_options)
    def options(self: Any, **given: Any) -> Any:
        _note(self, given)
        return plain_options(self, **given)

    def output_mode(self: Any, mode: str) -> Any:
        setattr(self, _MODE, mode)
        return plain_mode(self, mode)

    @functools.wraps(plain_last)
    def ending(self: Any, path: Any = None, format: str | None = None, *others: Any, **more: Any) -> Any:
        named = str(format or getattr(self, _FORMAT, ""))
        found = _checks.get(named)
        check: OptionCheck | None = None if found is None else getattr(found, use)
        if check is not None:
            _note(self, {key: value for key, value in more.items() if key not in _ARGUMENTS})
            if isinstance(path, str):
                _note(self, {"path": path})
            check(getattr(self, _GIVEN, {}))
        mode = others[0] if others else more.get("outputMode") or getattr(self, _MODE, "")
        if found is not None and found.updates is not None and use == "write_stream" and str(mode).lower() == "update":
            # Without its checkpoint, Spark would begin a new query in a temporary one and say nothing.
            rest = {key: value for key, value in more.items() if key in _ARGUMENTS or key.lower() == _CHECKPOINT}
            return plain_last(self.foreachBatch(found.updates(getattr(self, _GIVEN, {}))), None, None, *others, **rest)
        return plain_last(self, path, format, *others, **more)

    for name, method in (("format", format), ("option", option), ("options", options), (last, ending)):
        setattr(kind, name, method)
    if plain_mode is not None:
        kind.outputMode = functools.wraps(plain_mode)(output_mode)


def _note(reader: Any, given: Mapping[str, Any]) -> None:
    """Note options as Spark does: a later one of the same name, whatever its case, counts."""
    before: dict[str, str] = getattr(reader, _GIVEN, {})
    names = {key.lower() for key in given}
    kept = {key: value for key, value in before.items() if key.lower() not in names}
    noted = {key: _text(value) for key, value in given.items() if value is not None}
    setattr(reader, _GIVEN, kept | noted)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
