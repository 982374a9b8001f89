"""One answer in the form that is wanted: as ``pulsar-admin`` prints it, as a table, or as JSON.

Names in it are strangers' wherever it goes: a newline in one begins no line of its own, and JSON stays JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TextIO

from magnetar.cli.output.java_json import java_text, pretty
from magnetar.cli.output.terminal import Terminal, terminal_of
from magnetar.runtime.harmless_text import escaped, json_escaped, one_line

Form = Literal["plain", "table", "json"]
FORMS: Final = ("plain", "table", "json")


@dataclass
class Printer:
    """Prints answers to one stream; ``form`` None is a table on a terminal and plain text elsewhere."""

    form: Form | None = None
    out: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def terminal(self) -> Terminal:
        return terminal_of(self.out)

    @property
    def shape(self) -> Form:
        """The form that answers are printed in."""
        return self.form or ("table" if self.terminal.interactive else "plain")

    def show(self, kind: str, value: Any, title: str) -> None:
        """Print an answer. Kinds: empty (nothing), ``json``, ``lines`` (a list), ``map`` (a key and a value in a line),
        ``raw`` (its text), ``word`` (the same, nothing if it is null), ``jackson`` (JSON, a text too), ``text:`` (a
        sentence)."""
        if kind.startswith("text:"):
            self.text(kind.removeprefix("text:"))
        elif not kind:
            return
        elif self.shape == "json":
            self._json(json.dumps(value, indent=2, ensure_ascii=not self._unicode))
        elif self.shape == "table":
            from magnetar.cli.output.tables import render

            render(value, title, self.out, self.terminal)
        else:
            self._plain(kind, value)

    def text(self, line: str) -> None:
        """Print a sentence; with ``json`` as an object with a message."""
        if self.shape == "json":
            self._json(json.dumps({"message": line}))
        else:
            self._write(escaped(line) if self.terminal.interactive else line)

    def _plain(self, kind: str, value: Any) -> None:
        if kind == "lines" and isinstance(value, list):
            for one in value:
                self._item(one)
        elif kind == "map" and isinstance(value, dict):
            for key, one in value.items():
                self._line(f"{key}    {java_text(one)}")
        elif kind.startswith("gson"):
            self._gson(value, kind)
        elif kind == "raw-upper":
            self._line(java_text(value).upper())
        elif kind == "jackson":
            self._json(pretty(value))
        elif kind == "word" and value is None:
            self._line("")
        elif kind == "raw":
            self._line(java_text(value))
        else:
            self._item(value)

    def _gson(self, value: Any, kind: str) -> None:
        """What Gson writes: statistics without a newline at the end, an array's elements one after the other."""
        if kind == "gson-pretty":
            return self._json(json.dumps(value, indent=2, ensure_ascii=not self._unicode))
        for one in value if isinstance(value, list) else [value]:
            text = json.dumps(one, indent=4) if kind == "gson-indent" else json.dumps(one, separators=(",", ":"))
            self.out.write(text + ("\n\n" if kind == "gson-indent" and isinstance(value, list) else ""))
        return None

    @property
    def _unicode(self) -> bool:
        return (self.out.encoding or "ascii").lower().replace("-", "") == "utf8"

    def _item(self, value: Any) -> None:
        """A text as a line, what has parts as JSON."""
        if isinstance(value, str):
            self._line(value)
        else:
            self._json(pretty(value))

    def _line(self, text: str) -> None:
        self._write(one_line(text))

    def _json(self, text: str) -> None:
        self._write(json_escaped(text))

    def _write(self, line: str) -> None:
        encoding = self.out.encoding or "utf-8"
        self.out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
