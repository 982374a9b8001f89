"""One answer in the form that is wanted: as ``pulsar-admin`` prints it, as a table, or as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TextIO

from magnetar.cli.output.java_json import java_text, pretty
from magnetar.cli.output.terminal import Terminal, terminal_of
from magnetar.runtime.harmless_text import escaped

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
            self._write(json.dumps(value, indent=2, ensure_ascii=not self._unicode))
        elif self.shape == "table":
            from magnetar.cli.output.tables import render

            render(value, title, self.out, self.terminal)
        else:
            self._plain(kind, value)

    def text(self, line: str) -> None:
        """Print a sentence; with ``json`` as an object with a message."""
        if self.shape == "json":
            self._write(json.dumps({"message": line}))
        else:
            self._write(line)

    def _plain(self, kind: str, value: Any) -> None:
        if kind == "lines" and isinstance(value, list):
            for one in value:
                self._write(one if isinstance(one, str) else pretty(one))
        elif kind == "map" and isinstance(value, dict):
            for key, one in value.items():
                self._write(f"{key}    {java_text(one)}")
        elif kind.startswith("gson"):
            self._gson(value, kind)
        elif kind == "raw-upper":
            self._write(java_text(value).upper())
        elif kind == "jackson":
            self._write(pretty(value))
        elif kind == "word" and value is None:
            self._write("")
        elif kind == "raw" or isinstance(value, str):
            self._write(java_text(value))
        else:
            self._write(pretty(value))

    def _gson(self, value: Any, kind: str) -> None:
        """What Gson writes: statistics without a newline at the end, an array's elements one after the other."""
        if kind == "gson-pretty":
            return self._write(json.dumps(value, indent=2, ensure_ascii=not self._unicode))
        for one in value if isinstance(value, list) else [value]:
            text = json.dumps(one, indent=4) if kind == "gson-indent" else json.dumps(one, separators=(",", ":"))
            self.out.write(text + ("\n\n" if kind == "gson-indent" and isinstance(value, list) else ""))
        return None

    @property
    def _unicode(self) -> bool:
        return (self.out.encoding or "ascii").lower().replace("-", "") == "utf8"

    def _write(self, line: str) -> None:
        if self.terminal.interactive:
            line = escaped(line)
        encoding = self.out.encoding or "utf-8"
        self.out.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
