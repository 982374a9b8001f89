"""What keeps which segment, and how much of it lives, against sums over a plain list of spans."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from magnetar.storage.space.occupancy import Occupancy
from magnetar.storage.space.victims import SegmentUse

SEGMENTS = range(1, 6)
WORTH = 60


class Piece:
    """What a span says of itself here."""

    def __init__(self, segment: int, living: int) -> None:
        self.segment = segment
        self.living = living


class Plain:
    """The same, with nothing clever: every answer is counted anew."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.sizes: dict[int, int] = {}
        self.moves: list[tuple[int, int, int]] = []
        """From, to, bytes; forgotten with the segment that they left."""

    def living(self, number: int) -> int:
        return sum(piece.living for piece in self.pieces if piece.segment == number)

    def needed(self, number: int) -> bool:
        return any(piece.segment == number for piece in self.pieces)

    def removable(self, number: int, border: int) -> bool:
        known = all(target <= border for source, target, _ in self.moves if source == number)
        return number <= border and not self.needed(number) and known


def compare(occupancy: Occupancy, plain: Plain) -> None:
    assert sorted(occupancy.numbers()) == [n for n in SEGMENTS if plain.needed(n)]
    for number in SEGMENTS:
        assert (number in occupancy) == plain.needed(number)
        assert occupancy.living(number) == plain.living(number)
        assert set(cast("Any", occupancy.spans(number))) == {p for p in plain.pieces if p.segment == number}
        for border in range(7):
            assert occupancy.removable(number, border) == plain.removable(number, border), (number, border)
    for border in range(7):
        assert occupancy.waiting(SEGMENTS, border) == sum(
            plain.sizes.get(n, 0) for n in SEGMENTS if not plain.needed(n) and not plain.removable(n, border)
        )
    assert occupancy.copied == sum(size for _, _, size in plain.moves)
    assert set(occupancy._living) <= set(occupancy.numbers()), "nothing is left of those that are not needed"


def step(rng: Random, occupancy: Occupancy, plain: Plain) -> int:
    """One change; how many bytes more are dead for that."""
    what = rng.choice(("come", "come", "come", "go", "go", "shrink", "shrink", "move", "seal", "remove", "stay", "use"))
    piece = rng.choice(plain.pieces) if plain.pieces else None
    if what == "come":
        piece = Piece(rng.choice(SEGMENTS), rng.randint(0, 30))
        plain.pieces.append(piece)
        occupancy.added(cast("Any", piece))
    elif what == "go" and piece is not None:
        plain.pieces.remove(piece)
        occupancy.dropped(cast("Any", piece))
        occupancy.dropped(cast("Any", piece))  # who is gone is not counted twice
        return piece.living
    elif what == "shrink" and piece is not None and piece.living:
        size = rng.randint(1, piece.living)
        piece.living -= size
        occupancy.shrunk(cast("Any", piece), size)
        return size
    elif what == "move" and piece is not None:
        target, size = rng.choice(SEGMENTS), piece.living
        plain.moves.append((piece.segment, target, size))
        occupancy.moved(piece.segment, target, size)
        return -size
    elif what == "seal":
        number = rng.choice(SEGMENTS)
        plain.sizes[number] = occupancy.sizes[number] = rng.randint(1, 60)
    elif what == "use":
        assert sorted(occupancy.uses()) == [
            SegmentUse(n, size, min(plain.living(n), size))
            for n, size in sorted(plain.sizes.items())
            if plain.needed(n)
        ]
    elif what == "remove":
        number = rng.choice(SEGMENTS)
        if not plain.needed(number):
            plain.sizes.pop(number, None)
            plain.moves = [move for move in plain.moves if move[0] != number]
            occupancy.removed(number)
    elif what == "stay":
        number = rng.choice(SEGMENTS)
        occupancy.stays(number)
        # where it went is known, but nothing waits for what was copied
        plain.moves = [(source, target, 0 if source == number else size) for source, target, size in plain.moves]
    return 0


@pytest.mark.parametrize("seed", range(12))
def test_any_changes_leave_what_a_list_would_say(seed: int) -> None:
    rng, occupancy, plain = Random(seed), Occupancy(), Plain()
    for _ in range(120):
        step(rng, occupancy, plain)
        compare(occupancy, plain)


@pytest.mark.parametrize("seed", range(6))
def test_a_pass_is_asked_for_each_time_that_enough_has_died(seed: int) -> None:
    """What was moved died nowhere: it lies in another segment as well."""
    rng, occupancy, plain = Random(seed), Occupancy(), Plain()
    asked: list[int] = []
    occupancy.worth, occupancy.on_died = WORTH, lambda: asked.append(1)
    died = wanted = 0
    for _ in range(300):
        died += step(rng, occupancy, plain)
        if died >= WORTH:
            died, wanted = 0, wanted + 1
        assert (occupancy.died, len(asked)) == (died, wanted)
    assert wanted
