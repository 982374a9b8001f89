"""What an object is made of, and which of its parts are larger than they look."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any, Final

SHARED_MOST: Final = 29
"""CPython 3.11 shares the keys of instances with up to so many attributes among all of a class; beyond, each instance
has a hash table of its own, of 1.6 KB with 30."""


def parts_of(root: object, rooms: tuple[str, ...]) -> list[Any]:
    """The objects of these modules that can be reached from ``root`` through each other, lists, dicts and calls."""
    met, todo, parts = {id(root)}, [root], []
    while todo:
        one = todo.pop()
        ours = type(one).__module__.startswith(rooms)
        if ours:
            parts.append(one)
        for other in gc.get_referents(one):
            if id(other) in met or isinstance(other, type):
                continue
            kind = type(other)
            if kind.__module__.startswith(rooms) or (ours and kind.__module__ == "builtins"):
                met.add(id(other))
                todo.append(other)
    return parts


def with_own_tables(parts: Iterable[object]) -> dict[str, int]:
    """Classes of those that have more attributes than share their keys, and how many."""
    many = {type(part).__name__: len(vars(part)) for part in parts if hasattr(part, "__dict__")}
    return {name: count for name, count in many.items() if count > SHARED_MOST}


def bytes_of(parts: Iterable[object]) -> int:
    """What they take with the containers and texts that are theirs alone, as far as Python tells."""
    found = {id(part): part for part in parts}
    for part in list(found.values()):
        for other in gc.get_referents(part):
            if isinstance(other, list | dict | set | str | bytes) or type(other).__module__ == "collections":
                found[id(other)] = other
    return sum(map(sys.getsizeof, found.values()))
