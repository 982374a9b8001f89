"""How a bundle is divided: from an algorithm's name and what lies in the bundle to the places of new boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import excerpt
from magnetar.model.errors import InvalidValueError, PreconditionFailedError
from magnetar.model.policies import Json

BUNDLES_MAX: Final = 1 << 16
"""Of one namespace."""
RANGE: Final = "range_equally_divide"
COUNT: Final = "topic_count_equally_divide"
POSITIONS: Final = "specified_positions_divide"
FLOW: Final = "flow_or_qps_equally_divide"
ALGORITHMS: Final = (RANGE, COUNT, POSITIONS, FLOW)


def algorithm_of(name: str | None, positions: Sequence[int]) -> str:
    """The algorithm of that name, for these positions; by range if none is named. Raises PreconditionFailedError."""
    if not name:
        return RANGE
    if name not in ALGORITHMS:
        raise PreconditionFailedError(
            f"Unsupported namespace bundle split algorithm, supported algorithms are [{', '.join(ALGORITHMS)}]"
        )
    if name == FLOW:
        raise PreconditionFailedError(
            f"{FLOW} needs the rates that a load manager measures, which a request does not bring; name another "
            f"algorithm: {RANGE}, {COUNT} or {POSITIONS}"
        )
    if name == POSITIONS and not positions:
        raise PreconditionFailedError(f"With {POSITIONS} split algorithm, splitBoundaries must not be empty")
    return name


def positions_of(body: Json) -> list[int]:
    """The positions in a request's body, ascending, each once. Raises InvalidValueError."""
    if body is None:
        return []
    if not isinstance(body, list):
        raise InvalidValueError(f"expected a list of positions in the hash space, got {excerpt(body)}")
    if len(body) > BUNDLES_MAX:
        raise InvalidValueError(f"expected {BUNDLES_MAX} positions in the hash space at most, got {len(body)}")
    return sorted({coercion.number(item, "a position in the hash space") for item in body})


def divided(
    boundaries: Sequence[int], low: int, high: int, algorithm: str, hashes: Sequence[int], positions: Sequence[int]
) -> list[int]:
    """The boundaries of a namespace after the bundle from ``low`` to ``high`` is divided; the same if it cannot be.

    ``hashes``: places of its topics. Raises PreconditionFailedError.
    """
    if algorithm == POSITIONS:
        new = [place for place in positions if low < place < high]
    elif algorithm == COUNT:
        new = _middle_of(sorted(hashes))
    else:
        new = [low + (high - low) // 2]
        if new == [low]:
            raise PreconditionFailedError(f"the bundle 0x{low:08x}_0x{high:08x} is too small to be split")
    after = sorted({*boundaries, *(place for place in new if low < place < high)})
    if len(after) - 1 > BUNDLES_MAX:
        raise PreconditionFailedError(f"a namespace has {BUNDLES_MAX} bundles at most")
    return after


def _middle_of(hashes: Sequence[int]) -> list[int]:
    """Between the two topics in the middle; nothing for fewer than two."""
    if len(hashes) < 2:
        return []
    before, after = hashes[len(hashes) // 2 - 1], hashes[len(hashes) // 2]
    return [before + (after - before) // 2]
