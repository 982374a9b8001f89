"""What a command is called in texts for people: as Pulsar's documentation and logs call it."""

from __future__ import annotations


def name_of(kind: type) -> str:
    """``Send`` for :class:`CommandSend`; other classes keep their names."""
    return kind.__name__.removeprefix("Command")
