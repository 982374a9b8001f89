"""Operations of one policy: show, set and remove, made from one line for each policy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from magnetar.admin_api.operation import Operation, Parameter

_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_ERRORS: Final[Mapping[int, str]] = MappingProxyType({})


class PolicyRow(NamedTuple):
    """One policy."""

    word: str
    """The last part of its path."""
    type: Any
    what: str
    """It in words, as in "Show ..."."""
    example: Any
    method: str = "POST"
    unset: int = 200
    """The status of an answer while it is not set; 0: there is always an answer."""
    removable: bool = True
    success: int = 204
    body: bool = True
    """Whether setting takes a body."""
    errors: Mapping[int, str] = _NO_ERRORS
    applied: bool = True
    """Of a topic's: whether ``applied`` shows what holds for it."""

    asked: tuple[Parameter, ...] = ()
    """What only showing this one takes."""

    @property
    def verb(self) -> str:
        """The word as a part of a Python name."""
        return _CAPITAL.sub("_", self.word).lower()


def policy_operations(
    group: str,
    path: str,
    rows: Iterable[PolicyRow],
    of: str,
    shown: tuple[Parameter, ...] = (),
    changed: tuple[Parameter, ...] = (),
) -> Iterator[Operation]:
    """Yield what there is for each row; ``shown`` and ``changed`` are the parameters of both kinds of requests."""
    for row in rows:
        place = f"{path}/{row.word}"
        asked = (*row.asked, *(one for one in shown if one.name != "applied" or row.applied))
        yield Operation(
            f"{group}.get_{row.verb}", "GET", place, f"Show {row.what} of {of}",
            query=asked, answer=row.type, unset=row.unset,
            description="An answer without a body: it is not set." if row.unset else "",
        )  # fmt: skip
        yield Operation(
            f"{group}.set_{row.verb}", row.method, place, f"Set {row.what} of {of}",
            query=changed, body=row.type if row.body else None, success=row.success,
            example=row.example if row.body else None, errors=row.errors,
        )  # fmt: skip
        if row.removable:
            yield Operation(
                f"{group}.remove_{row.verb}", "DELETE", place, f"Remove {row.what} from {of}", query=changed
            )
