"""Values that nobody expects, put into what JSON and integers can hold."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [
    None, True, False, "", "x", "\ud800", [], {}, [[]], [1], {"a": 1}, -1, 0, 1, 2, 7, 40, 1 << 31, 1 << 40,
    (1 << 62) - 1, 1 << 62, 1 << 63, 1 << 64, 10**30, 0.5, float("nan"), float("inf"),
]  # fmt: skip
U64S = [0, 1, 2, 7, 40, 1 << 31, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, (1 << 64) - 1]


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested lists and dicts, as its container and the key in that."""
    if isinstance(value, list | dict):
        for key in range(len(value)) if isinstance(value, list) else list(value):
            yield value, key
            yield from nodes(value[key])


def mutated(rng: random.Random, whole: Any) -> None:
    """Change one thing."""
    container, key = rng.choice(list(nodes(whole)))
    change = rng.randrange(5)
    if change == 0:
        del container[key]
    elif change == 1 and isinstance(container, list):
        container.insert(key, container[rng.randrange(len(container))])
    elif change == 2 and isinstance(container, list):
        rng.shuffle(container)
    elif change == 3 and type(container[key]) is int:
        container[key] += rng.choice([-1, 1, 3, -container[key] * 2])
    else:
        container[key] = rng.choice(VALUES)
