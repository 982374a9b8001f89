"""A family of series: a name, what its numbers mean, and what distinguishes them."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "summary", "histogram"]


class Family(NamedTuple):
    """One family of /metrics. Every series has the label ``cluster`` besides."""

    name: str
    """As in the TYPE line: of counters that Apache Pulsar's library makes, without ``_total``."""
    kind: Kind
    labels: str
    """Separated by blanks."""
    help: str
    setting: str = ""
    """The setting without which it is not shown."""

    @property
    def head(self) -> str:
        """The lines HELP and TYPE."""
        escaped = self.help.replace("\\", "\\\\").replace("\n", "\\n")
        # the text format names a counter as its samples are named
        name = f"{self.name}_total" if self.kind == "counter" and not self.name.endswith("_total") else self.name
        return f"# HELP {name} {escaped}\n# TYPE {name} {self.kind}\n"
