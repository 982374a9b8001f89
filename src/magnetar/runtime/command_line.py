"""A set of commands whose help answers at once: plain text, without Rich, and without pydantic.

Typer takes Rich for help and errors if it is there, which is two thirds of a help page's time, and pydantic for the
value of each parameter that is no plain flag. In a group above the command whose help is wanted, that was the group's
own option ``--help``, although it was not given.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class PlainGroup(TyperGroup):
    """A group whose option ``--help`` is false, instead of unknown, where it is not given."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)
        if option is not None and option.default is None:
            option.default = False
        return option


def commands(help: str) -> typer.Typer:
    """An empty set of commands."""
    return typer.Typer(
        help=help,
        cls=PlainGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
