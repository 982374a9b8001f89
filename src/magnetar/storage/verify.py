"""``magnetar verify``: every byte of a directory read, every checksum checked, nothing changed.

Start-up reads only what is younger than the newest checkpoint; this reads everything, so it finds bit rot in old
segments, indexes that lead astray, checkpoints that could not be used, metadata that a start would have to mend, and
entries that a checkpoint promises and no segment holds, unless a record after it says that they were let go. A torn
end of the newest segment is what a kill leaves and no damage; so is a missing index. Copies of offloaded ledgers lie
elsewhere and are not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from magnetar.model.errors import PersistenceError
from magnetar.storage.backends.file_names import checkpoint_names, segment_numbers
from magnetar.storage.backends.files import FileSystem
from magnetar.storage.backends.journal_backend import index_name, segment_name
from magnetar.storage.backends.newest_segment import NAME as NEWEST
from magnetar.storage.backends.newest_segment import noted_newest
from magnetar.storage.directory_format import require_files
from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.log import checkpoint, judged_records, records
from magnetar.storage.log.segment import SegmentIndex
from magnetar.storage.log.segment_scan import ScannedBlock, SegmentScan
from magnetar.storage.lost_blocks import begun_but_hollow, blocks_missing, gap_after, newest_lost
from magnetar.storage.metadata_log.metadata_log import examine
from magnetar.storage.metadata_log.metadata_scan import COPIES


class FoundExtent(NamedTuple):
    """Consecutive entries of a log, and the place where they were found."""

    first: int
    end: int
    offset: int
    length: int


class _LetGo:
    """What records say is not needed in any segment; such a record is final, so where it stands does not matter."""

    def __init__(self) -> None:
        self._deleted: set[int] = set()
        self._trimmed: dict[int, int] = {}
        self._released: set[tuple[int, int]] = set()

    def note(self, raw: records.RawRecord) -> None:
        """Any record."""
        if raw.kind not in (records.RecordKind.LOG_DELETED, records.RecordKind.TRIMMED, records.RecordKind.OFFLOADED):
            return
        fields = json.loads(raw.body)
        log = fields["log"]
        if raw.kind == records.RecordKind.LOG_DELETED:
            self._deleted.add(log)
        elif raw.kind == records.RecordKind.TRIMMED:
            self._trimmed[log] = max(fields["ordinal"], self._trimmed.get(log, 0))
        elif Offload.from_list(fields["offload"]).released:
            self._released.add((log, fields["ledger"]))

    def covers(self, log: int, ledger: int, end: int) -> bool:
        """Whether a log's entries of that ledger below ``end`` need not be there."""
        return log in self._deleted or (log, ledger) in self._released or end <= self._trimmed.get(log, 0)


@dataclass
class VerifyReport:
    """The findings of one check."""

    lines: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)


def verify(files: FileSystem, *, elsewhere: bool = True) -> VerifyReport:
    """Read the whole directory.

    Raises PersistenceError while a broker uses it, if it is of a newer format, or if something else stands where a file
    belongs.

    ``elsewhere``: metadata that are not here may be in an older version's file.
    """
    try:
        files.lock()
    except BlockingIOError:
        raise PersistenceError("the data directory is in use; stop the broker first") from None
    try:
        require_files(files)
        return _Verification(files, elsewhere).run()
    finally:
        files.unlock()


class _Verification:
    def __init__(self, files: FileSystem, elsewhere: bool) -> None:
        self._files = files
        self._elsewhere = elsewhere
        self._report = VerifyReport()
        self._names = files.names()
        self._extents: dict[int, dict[int, list[FoundExtent]]] = {}
        """Extents per segment and log."""
        self._lengths: dict[int, int] = {}
        """Bytes of a segment that are known to have been durable."""
        self._let_go = _LetGo()
        self._noted = noted_newest(self._files)
        self._hollow = False
        """The last segment that was read has no whole block."""
        self._next = (0, 0)
        """The segment after the one that was read last, and the sequence of the block that comes next."""
        self._owner: int | None = None
        """The directory's secret, if the metadata say it."""

    def run(self) -> VerifyReport:
        self._metadata()
        newest = self._checkpoints()
        if newest is not None:
            self._lengths[newest.head["segment"]] = newest.head["length"]
        numbers = segment_numbers(self._names)
        covered = newest.head["segment"] if newest is not None else 0
        gap = gap_after(covered, numbers)
        if gap is not None:
            self._damaged(gap)
        if NEWEST in self._names and self._noted is None:
            self._say(
                f"{NEWEST}: unreadable, so a newest segment that is gone is not noticed; the next one writes it anew"
            )
        for number in numbers:
            self._border(number)
        for number in numbers:
            self._segment(number, last=number == numbers[-1])
            if index_name(number) in self._names:
                self._index(number)
            else:
                self._say(f"{index_name(number)}: none; made when it is needed")
        lost = newest_lost(self._noted, max([covered, *numbers]), hollow=self._hollow and numbers[-1] > covered)
        if lost is not None:
            self._damaged(lost)
        if newest is not None:
            self._promises(newest)
        for name in self._names:
            if name.startswith("quarantine-"):
                self._say(f"{name}: set aside by an earlier start")
            elif name.endswith(".new"):
                self._say(f"{name}: half-written, removed at the next start")
        return self._report

    def _say(self, text: str) -> None:
        self._report.lines.append(text)

    def _damaged(self, text: str) -> None:
        self._report.damage.append(text)

    def _content(self, name: str) -> bytes:
        file = self._files.open(name)
        try:
            return file.read(0, file.size())
        finally:
            file.close()

    def _metadata(self) -> None:
        """Report what a start would say of the metadata."""
        if self._elsewhere and not any(name in self._names for name in COPIES):
            self._say("no metadata log: taken over from metadata.sqlite at the next start, if that is there")
            return
        try:
            examined = examine(self._files)
        except OSError as error:
            self._damaged(f"{' and '.join(COPIES)} cannot be read: {error}")
            return
        facts, self._owner = examined.facts, examined.instance
        self._say(f"{' and '.join(COPIES)}: up to change {facts.last}")
        self._report.lines += [f"{text}: a change that was cut off" for text in facts.torn]
        self._report.damage += facts.damage
        if facts.doubt is not None:
            self._damaged(
                f"metadata in doubt: {facts.doubt}; a broker starts and deletes nothing until an operator has checked "
                "the policies and said so: magnetar rescue metadata DIR"
            )

    def _checkpoints(self) -> checkpoint.Checkpoint | None:
        newest, damaged = None, []
        for name in checkpoint_names(self._names):
            try:
                found = checkpoint.decode(self._content(name), self._owner)
            except (records.RecordError, OSError) as error:
                damaged.append(f"{name}: {error}")
                continue
            for text in damaged:
                self._damaged(f"{text}; a start uses a newer one and does not read it")
            newest, damaged = found, []
            cursors = sum(len(log.cursors) for log in found.logs)
            feature_states = sum(len(log.feature_states) for log in found.logs)
            what = f"{len(found.logs)} logs, {cursors} cursors, {feature_states} feature states"
            self._say(f"{name}: up to segment {found.head['segment']}, {what}")
        for text in damaged:
            self._damaged(f"{text}; a start sets it aside")
        return newest

    def _border(self, number: int) -> None:
        """What a segment's header says of the one before it."""
        try:
            file = self._files.open(segment_name(number))
            try:
                header = records.parse_segment_header(file.read(0, records.SEGMENT_HEADER_SIZE))
            finally:
                file.close()
        except (records.RecordError, OSError):
            return  # its own scan names it
        self._lengths[number - 1] = header.previous_length

    def _segment(self, number: int, *, last: bool) -> None:
        found = self._extents[number] = {}
        blocks = entries = 0
        file = self._files.open(segment_name(number))
        try:
            begun = number == self._noted
            scan = SegmentScan(None, number, file, self._lengths.get(number), secret=self._owner, begun=begun)
            for block in self._blocks(scan):
                if not blocks:
                    self._follows(number, block.sequence)
                blocks += 1
                for raw in block.records:
                    if not self._is_ours(scan, block, raw):
                        continue
                    self._let_go.note(raw)
                    if raw.kind == records.RecordKind.EXTENT:
                        head = records.extent_head(raw.body)
                        entries += head.entries
                        length = records.RECORD_HEADER_SIZE + len(raw.body)
                        extent = FoundExtent(head.ordinal, head.ordinal + head.entries, block.offset + raw.at, length)
                        found.setdefault(head.log, []).append(extent)
            size, self._hollow = file.size(), scan.hollow
        finally:
            file.close()
        self._say(f"{segment_name(number)}: {size} bytes, {blocks} blocks, {entries} entries of {len(found)} logs")
        if scan.torn is not None:
            self._say(scan.torn)
        self._report.damage += scan.damage
        if begun and scan.hollow and not last and not scan.damage:
            self._damaged(begun_but_hollow(number))
        self._next = (number + 1, scan.sequence + 1 if blocks else self._next[1])

    def _is_ours(self, scan: SegmentScan, block: ScannedBlock, raw: records.RawRecord) -> bool:
        try:
            judged_records.judge(raw)
        except records.RecordError as error:
            scan.strange(block, raw, error)
        except PersistenceError as error:
            self._damaged(f"{scan.name} at offset {block.offset + raw.at}: {error}; a start refuses it")
        else:
            return True
        return False

    def _blocks(self, scan: SegmentScan) -> Iterator[ScannedBlock]:
        """What can be read of a segment, up to the first place that the disk does not give."""
        try:
            yield from scan
        except OSError as error:
            self._damaged(f"{error}; what comes after it in that file was not looked at")

    def _follows(self, number: int, sequence: int) -> None:
        """What the first block of a segment says of the one before it, if its header says nothing."""
        following, expected = self._next
        if following == number and number - 1 not in self._lengths:
            missing = blocks_missing(number - 1, expected, sequence)
            if missing is not None:
                self._damaged(missing)

    def _index(self, number: int) -> None:
        name = index_name(number)
        try:
            index = SegmentIndex(number, self._content(name))
            there = {
                (log, extent.first, extent.offset, extent.length)
                for log, extents in self._extents[number].items()
                for extent in extents
            }
            listed = list(index.extents())
        except (records.RecordError, OSError) as error:
            self._damaged(f"{name}: {error}; it is made anew when it is needed")
            return
        astray = [one for one in listed if one not in there]
        self._say(f"{name}: {len(listed)} extents")
        for log, first, offset, _ in astray:
            self._damaged(f"{name}: log {log} from ordinal {first} is not at offset {offset}")

    def _promises(self, newest: checkpoint.Checkpoint) -> None:
        """Entries that the newest checkpoint says are in a segment."""
        for log in newest.logs:
            for segment, ledger, first, end, _ in log.about["spans"]:
                if self._let_go.covers(log.about["id"], ledger, end):
                    continue
                at = first
                for extent in self._extents.get(segment, {}).get(log.about["id"], []):
                    if extent.first <= at < extent.end:
                        at = extent.end
                if at < end:
                    self._damaged(
                        f"{log.about['name']}: of ordinals {first} to {end - 1} in {segment_name(segment)} those from "
                        f"{at} on are not all there"
                    )
