"""Start-up is recovery: newest checkpoint, then every record younger than it, in order.

There is no other way to start, so the way after kill -9 is walked every time. The result is the state as of the last
durable group: every log's ledgers, spans and cursors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.journal_backend import JournalBackend, segment_name
from magnetar.storage.log import checkpoint, records
from magnetar.storage.log.segment_scan import Border, SegmentScan
from magnetar.storage.lost_blocks import begun_but_hollow, blocks_missing, gap_after
from magnetar.storage.replay.recovered import LogFactory, Recovered
from magnetar.storage.replay.replay import Replay


def recover(
    backend: JournalBackend,
    factory: LogFactory,
    owner: int | None = None,
    before_change: Callable[[], None] = lambda: None,
) -> Recovered:
    """Read the journal; ``owner`` is its secret, if that is known. ``before_change`` is called before the first write.

    Raises PersistenceError if it cannot be understood without loss; nothing is changed then.
    """
    found = Recovered()
    segments = backend.segments()
    found.checkpoint_number, image, damaged = checkpoint.find(backend, owner)
    replay = Replay(found, factory)
    if image is not None:
        replay.image(image)
    elif segments and segments[0] != 1:
        raise PersistenceError(
            f"no readable checkpoint, and {segment_name(1)} is gone: the state cannot be rebuilt. "
            f"Restore {_named(damaged) or 'a checkpoint'} or the directory from a backup"
        )
    young = [number for number in segments if number > found.checkpoint_segment]
    gap = gap_after(found.checkpoint_segment, segments)
    if gap is not None:
        raise PersistenceError(gap + (f" (damaged: {_named(damaged)})" if damaged else ""))
    before_change()
    checkpoint.set_aside(backend, damaged)
    found.segment = max([found.checkpoint_segment, *segments])
    if found.secret is None:
        found.secret = owner
    if image is not None and found.checkpoint_segment in segments:
        _name_a_cut(backend, found)
    found.noted = backend.noted_newest()
    for number, following in zip(young, [*young[1:], None], strict=False):
        _scan(backend, number, None if following is None else _border(backend, following), replay)
    if young:
        backend.sync()
    replay.settle()
    return found


def _named(checkpoints: Iterable[int]) -> str:
    return ", ".join(f"checkpoint-{number:016x}" for number in checkpoints)


def _name_a_cut(backend: JournalBackend, found: Recovered) -> None:
    """A start does not read the segment with which the checkpoint ends, but knows how long it is."""
    file = backend.open(found.checkpoint_segment)
    try:
        size = file.size()
    finally:
        file.close()
    if size < found.length:
        found.name(
            f"{segment_name(found.checkpoint_segment)} ends at {size} although {found.length} bytes were durable: the "
            "bytes after that are lost"
        )


def _border(backend: JournalBackend, number: int) -> Border:
    file = backend.open(number)
    try:
        return SegmentScan(backend, number, file).border()
    finally:
        file.close()


def _scan(backend: JournalBackend, number: int, border: Border | None, replay: Replay) -> None:
    """Replay one segment; ``border`` is the one between it and the next, None for the newest."""
    found = replay.found
    limit, before = border or (None, None)
    begun = number == found.noted
    file = backend.open(number)
    try:
        scan = SegmentScan(backend, number, file, limit, before, found.secret, begun=begun)
        scan.sequence = found.sequence - 1
        for block in scan:
            replay.logs.damaged = bool(found.damage or scan.damage)
            replay.sequence = block.sequence
            for raw in block.records:
                try:
                    replay.record(number, block.offset, raw)
                except records.RecordError as error:
                    scan.strange(block, raw, error)
                    replay.logs.damaged = True
        found.sequence = scan.sequence + 1
        found.secret = scan.secret
        found.damage += scan.damage
        lost = None
        if begun and scan.hollow and not scan.damage and border is not None:  # the store names the newest
            lost = begun_but_hollow(number)
        elif before is not None:
            lost = blocks_missing(number, found.sequence, before)
        if lost is not None:
            found.name(lost)
        found.blocks_lost |= bool(scan.damage or lost)
        found.scanned.append(number)
        found.hollow = scan.hollow
        found.length = scan.length
        if limit is None and file.size() > scan.length and not scan.kept_in_place:
            file.truncate(scan.length)
        # after kill -9 what was read may be in the page cache only, and a checkpoint is about to rely on it
        file.sync()
    finally:
        file.close()
