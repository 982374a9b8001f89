"""The options and places of a command that typer declares: which of them the word that is being typed stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class DeclaredParameter(Protocol):
    """An option or an argument, as far as completion looks at it."""

    name: str | None
    opts: list[str]
    secondary_opts: list[str]
    param_type_name: str
    hidden: bool
    is_flag: bool
    multiple: bool
    nargs: int


@dataclass
class WordPlace:
    """Where the next word of a command line stands."""

    waiting: str | None = None
    """The option whose value it is, by the name of its parameter."""
    argument: str | None = None
    """The argument that it is, unless it begins with a dash."""
    options: list[str] = field(default_factory=list)
    """The options that it may be."""
    given: dict[str, str] = field(default_factory=dict)
    """The values so far, by the names of parameters; of several, the last."""


def place_of(command: Any, before: Sequence[str]) -> WordPlace:
    """Return where the word after some others stands."""
    parameters: list[DeclaredParameter] = command.params
    options = [one for one in parameters if one.param_type_name == "option"]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    by_word = {word: one for one in options for word in (*one.opts, *one.secondary_opts)}
    place = WordPlace()
    used: set[str | None] = set()
    waiting: DeclaredParameter | None = None
    only_arguments = False
    for word in before:
        name, equals, value = word.partition("=")
        if waiting is not None:
            place.given[waiting.name or ""], waiting = word, None
        elif not only_arguments and word == "--":
            only_arguments = True
        elif not only_arguments and (option := by_word.get(name)) is not None:
            used |= set() if option.multiple else {option.name}
            if equals:
                place.given[option.name or ""] = value
            elif not option.is_flag:
                waiting = option
        elif arguments and (only_arguments or not word.startswith("-")):
            place.given[arguments[0].name or ""] = word
            if arguments[0].nargs == 1:
                arguments = arguments[1:]
    if waiting is not None:
        place.waiting = waiting.name
        return place
    place.argument = arguments[0].name if arguments else None
    if not only_arguments:
        place.options = [max(one.opts, key=len) for one in options if not one.hidden and one.name not in used]
        place.options += [word for one in options if one.name not in used for word in one.secondary_opts]
        place.options.append("--help")
    return place
