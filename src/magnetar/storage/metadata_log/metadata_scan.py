"""The metadata log's lines, and what two damaged copies of it still say together. No I/O: bytes in, facts out.

One file is text that ``less`` can read, a line per change, each ``<crc32c, 8 hex digits> <body>``::

    4f1c2ab0 {"magnetar":"metadata","format":1,"instance":"0badcafe","records":2,"through":7,"doubt":null}
    0a1b2c3d 3 put 0 /tenants/public {"adminRoles":[],"allowedClusters":["standalone"]}
    …        7 put 4 /namespaces/public/default {…}
    …        8 delete 0 /topic-policies/…

The first line is the head. After it stand ``records`` lines: what was known when the file was written anew, each with
the number of the change that made it; every change up to ``through`` is in them. Then each change that came since, the
numbers without a gap. Checksums of the lines begin with the instance, the directory's secret: lines of another broker
do not count. Data that is not one line of text stands as ``put64`` in base64. A change that is made together with the
next line's has ``+`` before its version, which versions before November 2026 read as the number that it is.

A change is written and synced to the first copy, then to the second, then answered; so are changes that are made
together. So a bad end of one copy without its lines in the other was never answered: it is torn, and so is what the
next line, which is not there, belongs to. Everything else that is bad is damage; what one copy lost is taken
from the other, and only what both lost at once leaves a doubt.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crc32c import crc32c

from magnetar.storage.log import records
from magnetar.storage.log.checkpoint_head import is_number

COPIES: Final = ("metadata-a", "metadata-b")
FORMAT: Final = 1


class MetadataChange(NamedTuple):
    """One line after the head. ``data`` None: the record at ``path`` was deleted."""

    number: int
    version: int
    path: str
    data: bytes | None
    followed: bool = False
    """Whether it is made together with the next one, or not at all."""


class Head(NamedTuple):
    """The first line of a copy."""

    instance: int
    records: int
    through: int
    doubt: str | None


class NewerFormatError(records.RecordError):
    """Written by a later version of magnetar."""


def head_line(head: Head) -> bytes:
    """The head as it stands in the file."""
    fields = {
        "magnetar": "metadata",
        "format": FORMAT,
        "instance": f"{head.instance:08x}",
        "records": head.records,
        "through": head.through,
        "doubt": head.doubt,
    }
    return _line(json.dumps(fields, separators=(",", ":")).encode(), 0)


def change_line(change: MetadataChange, instance: int) -> bytes:
    """A change as it stands in the file."""
    number, version, path, data, followed = change
    made = b"%s%d" % (b"+" if followed else b"", version)
    if data is None:
        return _line(b"%d delete %s %s" % (number, made, path.encode()), instance)
    if _is_text(data):
        return _line(b"%d put %s %s %s" % (number, made, path.encode(), data), instance)
    return _line(b"%d put64 %s %s %s" % (number, made, path.encode(), base64.b64encode(data)), instance)


def is_path(path: str) -> bool:
    """Whether the path can stand in a line: no spaces, no control characters, nothing that is not text."""
    return path.isprintable() and " " not in path and path.startswith("/")


def _is_text(data: bytes) -> bool:
    try:
        return b"\n" not in data and data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _line(body: bytes, instance: int) -> bytes:
    return b"%08x %s\n" % (crc32c(body, instance), body)


def _body(line: bytes, instance: int) -> bytes | None:
    """What stands after a checksum that matches."""
    body = line[9:]
    return body if line[:9] == b"%08x " % crc32c(body, instance) else None


def _parse_head(line: bytes) -> Head | None:
    body = _body(line, 0)
    if body is None:
        return None
    try:
        fields = json.loads(body)
        if fields["magnetar"] != "metadata" or not is_number(fields["format"], 1 << 16):
            return None
        if fields["format"] > FORMAT:
            raise NewerFormatError(f"format {fields['format']}; this version of magnetar reads up to {FORMAT}")
        head = Head(int(fields["instance"], 16), fields["records"], fields["through"], fields["doubt"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    good = is_number(head.instance, 1 << 32) and is_number(head.records) and is_number(head.through)
    return head if good and (head.doubt is None or isinstance(head.doubt, str)) else None


def _parse_change(line: bytes, instance: int) -> MetadataChange | None:
    body = _body(line, instance)
    if body is None:
        return None
    try:
        number, verb, version, rest = body.split(b" ", 3)
        followed = version.startswith(b"+")
        if verb == b"delete":
            return MetadataChange(int(number), int(version), rest.decode(), None, followed)
        path, data = rest.split(b" ", 1)
        if verb == b"put64":
            data = base64.b64decode(data, validate=True)
        elif verb != b"put":
            return None
        return MetadataChange(int(number), int(version), path.decode(), data, followed)
    except (ValueError, binascii.Error):
        return None


@dataclass
class ScannedCopy:
    """One file, read."""

    name: str
    head: Head | None = None
    base: dict[int, MetadataChange] = field(default_factory=dict)
    """The changes that the head counts, by number."""
    changes: dict[int, MetadataChange] = field(default_factory=dict)
    """The changes that came since, by number."""
    bad: list[tuple[int, int]] = field(default_factory=list)
    """Unreadable stretches with something whole after them."""
    end: int = 0
    """Where the last whole line ends."""
    size: int = 0
    cut: dict[int, MetadataChange] = field(default_factory=dict)
    """The last changes, by number, if those that they are made together with are not there."""

    @property
    def last(self) -> int:
        """Number of the last change that it knows of."""
        through = self.head.through if self.head is not None else 0
        return max(through, max(self.changes, default=0), max(self.base, default=0))

    @property
    def before_last(self) -> int:
        """Number of the last change before the last one and all that were made together with it."""
        number = self.last - 1
        while (change := self.changes.get(number)) is not None and change.followed:
            number -= 1
        return number

    @property
    def based(self) -> bool:
        """Whether head and base are all there."""
        return self.head is not None and len(self.base) == self.head.records

    @property
    def whole(self) -> bool:
        """Whether nothing is missing up to its last line."""
        if not self.based or self.head is None or self.bad:
            return False
        return len(self.changes) == self.last - self.head.through

    @property
    def tail(self) -> int:
        """Bytes after the last whole line."""
        return self.size - self.end


def instance_of(data: bytes) -> int | None:
    """Whose file it says it is; None if its head is damaged. Raises NewerFormatError."""
    head = _parse_head(data[: data.find(b"\n")])
    return None if head is None else head.instance


def read_copy(name: str, data: bytes, instance: int | None) -> ScannedCopy:
    """One file. ``instance`` for one whose head is damaged. Raises NewerFormatError."""
    copy = ScannedCopy(name, size=len(data))
    at = data.find(b"\n") + 1
    copy.head = _parse_head(data[: max(at - 1, 0)])
    if copy.head is not None:
        instance, copy.end = copy.head.instance, at
    else:
        at = 0
    through = copy.head.through if copy.head is not None else -1
    begun, together_before = at, False
    for line in data[at:].split(b"\n"):
        change = _parse_change(line, instance or 0)
        start, at = at, at + len(line) + 1
        if change is None or at > len(data):
            continue
        if start > copy.end:
            copy.bad.append((copy.end, start))
        copy.end, begun = at, begun if together_before else start
        together_before = change.followed
        (copy.base if change.number <= through else copy.changes)[change.number] = change
    if together_before:
        _cut(copy, begun)
    return copy


def _cut(copy: ScannedCopy, begun: int) -> None:
    """Take off the changes from offset ``begun`` on: others that are made together with them are not there."""
    copy.end, number = begun, copy.last
    while (change := copy.changes.get(number)) is not None and change.followed:
        copy.cut[number] = copy.changes.pop(number)
        number -= 1


@dataclass
class JoinedCopies:
    """The contents of the copies together."""

    changes: list[MetadataChange] = field(default_factory=list)
    """The changes in order; applied one after the other they are the state."""
    last: int = 0
    damage: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    """Ends of writes whose success was never reported."""
    doubt: str | None = None
    """Why the facts are unknown."""
    mend: list[str] = field(default_factory=list)
    """Copies to be written anew."""
    aside: list[str] = field(default_factory=list)
    """Those of them that hold something unreadable, which is kept."""


def together(copies: list[ScannedCopy]) -> JoinedCopies:
    """Join what is left of the copies (one or two)."""
    found = JoinedCopies(last=max(copy.last for copy in copies))
    doubts = [copy.head.doubt for copy in copies if copy.head is not None and copy.head.doubt]
    found.doubt = doubts[0] if doubts else None
    best = max((copy for copy in copies if copy.whole), key=lambda copy: copy.last, default=None)
    if best is not None and best.last == found.last:
        found.changes = [*best.base.values(), *best.changes.values()]
    else:
        _puzzle(found, copies)
    both_tails = all(copy.tail for copy in copies)
    before_last = min((copy.before_last for copy in copies if copy.last == found.last), default=found.last)
    for i, copy in enumerate(copies):
        # the second copy may lack what was under way, the first one nothing that the second has
        _name(found, copy, before_last, answered=both_tails or copy.last < (before_last if i else found.last))
        if not copy.whole or copy.last < found.last or copy.tail:
            found.mend.append(copy.name)
        if not copy.whole or copy.tail:
            found.aside.append(copy.name)
    if both_tails and found.doubt is None:
        names = " and ".join(copy.name for copy in copies)
        found.doubt = f"the end of {names} is unreadable: changes after number {found.last} may be lost"
        found.damage.append(found.doubt)
    return found


def _name(found: JoinedCopies, copy: ScannedCopy, before_last: int, *, answered: bool) -> None:
    """Say what is wrong with one copy. ``answered``: what its bad end held must once have been whole."""
    if copy.head is None:
        found.damage.append(f"{copy.name}: its first line is unreadable")
    found.damage += [f"{copy.name} is unreadable from offset {start} to {stop}" for start, stop in copy.bad]
    if not copy.whole and not copy.bad and copy.head is not None:
        found.damage.append(f"{copy.name}: lines are missing")
    if copy.tail:
        text = f"{copy.name} is unreadable from offset {copy.end} to {copy.size}, its end"
        (found.damage if answered else found.torn).append(text)
    elif copy.whole and copy.last < before_last:
        found.damage.append(f"{copy.name} ends {found.last - copy.last} changes too early")


def _puzzle(found: JoinedCopies, copies: list[ScannedCopy]) -> None:
    """No copy has everything: line by line."""
    heads = [copy.head for copy in copies]
    lines = {
        number: change
        for copy in copies
        for number, change in (copy.cut | copy.base | copy.changes).items()
        if number <= found.last
    }
    based = max((copy for copy in copies if copy.based), key=lambda copy: _through(copy.head), default=None)
    if based is not None:
        through, base = _through(based.head), list(based.base.values())
    else:
        base = [change for number, change in sorted(lines.items()) if number <= _through(heads[0])]
        through = _through(heads[0])
        if len(set(heads)) != 1 or heads[0] is None or len(base) != heads[0].records:
            _doubt(found, copies, "some of what stood in both at their last rewriting")
    found.changes = [*base, *(change for number, change in sorted(lines.items()) if number > through)]
    missing = [number for number in range(through + 1, found.last + 1) if number not in lines]
    if missing:
        _doubt(found, copies, f"{len(missing)} changes ({_some(missing)})")


def _through(head: Head | None) -> int:
    return -1 if head is None else head.through


def _doubt(found: JoinedCopies, copies: list[ScannedCopy], what: str) -> None:
    names = " and ".join(copy.name for copy in copies)
    text = f"{what} cannot be read in {names}"
    found.damage.append(text)
    found.doubt = found.doubt or text


def _some(numbers: Iterable[int]) -> str:
    first = [str(number) for number in numbers]
    return ", ".join(first[:5]) + (" …" if len(first) > 5 else "")
