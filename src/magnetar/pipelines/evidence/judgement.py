"""Manifests against topics: whether anything was skipped, repeated or changed, and exactly where. Pure.

Seven questions, each with its own function:

* `chain`: are the manifests there, unchanged, and in one chain?
* `ranges`: does each micro-batch begin where the one before ended, as Spark's checkpoint has it too?
* `counts`: is every row that came in a sink, among the dead letters, or counted as dropped?
* `sources`: do the ranges still hold the rows that were read? They are read again, all micro-batches at once; only
  where the sums differ the range is halved, until the micro-batch is found.
* `delivered`: does an output topic hold every row of every micro-batch once? Rows carry their number: producer
  ``spark.<query>/<output>.<task>``, sequence id = micro-batch and row of the task (`spark.sequences`).
* `committed`: does a table have one commit of each micro-batch, with its rows?
* `kept`: are the rows of these commits still in its files, unchanged?
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from magnetar.client.read_position import START, ReadPosition
from magnetar.pipelines.declaration.model import DEAD_LETTERS
from magnetar.pipelines.state.manifest import BY_NAMES, FIRST, Manifest, OutputPart, print_text
from magnetar.spark.sink.sequence_ids import SequenceId as RowNumber

_LISTED: Final = 5
_UNTOLD: Final = "no manifest tells of it: manifests were removed, or the checkpoint was set back"

Recount = Callable[[str, Mapping[str, ReadPosition], Mapping[str, ReadPosition]], Mapping[str, tuple[int, int]]]
"""Source, start, end -> rows and sum of prints by topic-partition, as they are now."""


class Discrepancy(NamedTuple):
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


def places(texts: Mapping[str, str]) -> dict[str, ReadPosition]:
    """Of a manifest."""
    return {topic: ReadPosition.parse(text) for topic, text in texts.items()}


def chain(manifests: Sequence[Manifest], first: int = 0) -> list[Discrepancy]:
    """From batch ``first`` on."""
    found = []
    expected = first
    before: Manifest | None = None
    for one in manifests:
        if one.batch != expected:
            gone = f"batch {expected}" if one.batch == expected + 1 else f"batches {expected} to {one.batch - 1}"
            found.append(Discrepancy(gone, "the manifest is missing, while a later one is there"))
            before = None
        if one.digest() != one.fingerprint:
            found.append(Discrepancy(f"batch {one.batch}", "the manifest was changed after it was written"))
        seal = FIRST if one.batch == 0 else before.fingerprint if before is not None else None
        if seal is not None and one.previous != seal:
            found.append(
                Discrepancy(
                    f"batch {one.batch}", f"the manifest does not follow that of batch {one.batch - 1} as it is now"
                )
            )
        expected, before = one.batch + 1, one
    return found


def ranges(
    manifests: Sequence[Manifest],
    starts: Mapping[str, Mapping[str, ReadPosition]],
    logged: Callable[[int], Mapping[str, Mapping[str, ReadPosition]] | None],
) -> list[Discrepancy]:
    """``starts``: where each source began; ``logged``: the ends in Spark's checkpoint, None where it has none."""
    found: list[Discrepancy] = []
    before: Manifest | None = None
    for one in manifests:
        log = logged(one.batch)
        for name, source in one.sources.items():
            start, end = places(source.start), places(source.end)
            where = f"batch {one.batch}, source {name}"
            expected: Mapping[str, ReadPosition] | None = None
            if one.batch == 0:
                expected = starts.get(name, {})
            elif before is not None and before.batch == one.batch - 1 and name in before.sources:
                expected = places(before.sources[name].end)
            if expected is not None:
                found += _joined(where, expected, start)
            for topic, place in end.items():
                if place < start.get(topic, START):
                    found.append(Discrepancy(where, f"{topic}: the range ends at {place}, before it begins"))
            if log is not None and name in log and dict(log[name]) != end:
                found.append(Discrepancy(where, "Spark's checkpoint has another end of this range"))
        before = one
    return found


def _joined(
    where: str, expected: Mapping[str, ReadPosition], start: Mapping[str, ReadPosition]
) -> Iterator[Discrepancy]:
    for topic in sorted(expected.keys() | start.keys()):
        ended, begins = expected.get(topic, START), start.get(topic, START)
        if begins > ended:
            yield Discrepancy(where, f"{topic}: {ended} to {begins} was skipped")
        elif begins < ended:
            yield Discrepancy(where, f"{topic}: {begins} to {ended} was read twice")


def counts(manifests: Sequence[Manifest]) -> list[Discrepancy]:
    """In = out + dead + dropped, wherever rows are neither selected nor made on the way."""
    found = []
    for one in manifests:
        where = f"batch {one.batch}"
        for name, source in one.sources.items():
            read, judged = sum(source.rows.values()), one.checks[name].rows if name in one.checks else -1
            if read != judged:
                found.append(Discrepancy(where, f"source {name}: {read} rows were read and {judged} judged"))
        for name, check in one.checks.items():
            told = sum(check.causes.values())
            if told != check.dead + check.dropped:
                found.append(Discrepancy(where, f"{name}: {check.dead + check.dropped} rows left, {told} with a cause"))
        if (letters := one.outputs.get(DEAD_LETTERS)) is not None and letters.rows != one.dead:
            found.append(
                Discrepancy(where, f"{one.dead} rows were dead, and {letters.rows} were written as dead letters")
            )
        for name, output in one.outputs.items():
            if output.of and (passed := one.checks[output.of[-1]].passed) != output.rows:
                found.append(
                    Discrepancy(
                        where, f"sink {name}: {output.rows} rows were written of {passed} that passed {output.of[-1]}"
                    )
                )
            for earlier, later in pairwise(output.of or ()):
                passed, came = one.checks[earlier].passed, one.checks[later].rows
                if passed != came:
                    found.append(Discrepancy(where, f"{passed} rows passed {earlier} and {came} came to {later}"))
    return found


def runs(manifests: Sequence[Manifest]) -> Iterator[Sequence[Manifest]]:
    """Stretches without a missing manifest."""
    begin = 0
    for index in range(1, len(manifests) + 1):
        if index == len(manifests) or manifests[index].batch != manifests[index - 1].batch + 1:
            yield manifests[begin:index]
            begin = index


def sources(manifests: Sequence[Manifest], recount: Recount) -> list[Discrepancy]:
    """All rows are still there and the same."""
    found: list[Discrepancy] = []
    for run in runs(manifests):
        for name in sorted({name for one in run for name in one.sources}):
            found += _compared(run, name, recount)
    return found


def _compared(run: Sequence[Manifest], name: str, recount: Recount) -> list[Discrepancy]:
    parts = [one.sources[name] for one in run if name in one.sources]
    if not parts:
        return []
    told: dict[str, tuple[int, int]] = {}
    for part in parts:
        for topic, rows in part.rows.items():
            before = told.get(topic, (0, 0))
            told[topic] = before[0] + rows, before[1] + int(part.prints[topic], 16)
    now = recount(name, places(parts[0].start), places(parts[-1].end))
    wrong = [
        topic
        for topic, (rows, total) in told.items()
        if (now.get(topic, (0, 0))[0], print_text(now.get(topic, (0, 0))[1])) != (rows, print_text(total))
    ]
    if not wrong:
        return []
    if len(run) > 1:
        middle = len(run) // 2
        inside = _compared(run[:middle], name, recount) + _compared(run[middle:], name, recount)
        if inside:
            return inside
    where = f"batch {run[0].batch}" + (f" to {run[-1].batch}" if len(run) > 1 else "") + f", source {name}"
    found = []
    for topic in sorted(wrong):
        rows, there = told[topic][0], now.get(topic, (0, 0))[0]
        between = f"{parts[0].start.get(topic, str(START))} to {parts[-1].end.get(topic)}"
        text = (
            f"the range {between} had {rows} rows and has {there} now" if rows != there else f"rows of {between} differ"
        )
        found.append(Discrepancy(where, f"{topic}: {text}"))
    return found


class DeliveredRows:
    """The rows of one output as they stand in its topic: fed message by message, in the order of each topic."""

    def __init__(self, query: str, output: str) -> None:
        self._prefix = f"spark.{query}/{output}."
        self.rows: dict[tuple[int, int], bytearray] = {}
        """By micro-batch and task: how often each row of the task is there (up to 255)."""
        self.prints: dict[int, int] = {}
        self.others = 0
        """Messages of other producers."""
        self.repeated: list[Discrepancy] = []
        self.sealed: dict[int, int] = {}
        """By micro-batch: messages in entries that no key opens. Which rows they are is not known."""

    @property
    def there(self) -> int:
        """Messages of this output."""
        return sum(sum(one) for one in self.rows.values()) + sum(self.sealed.values())

    def is_ours(self, producer: str) -> bool:
        """Whether this output sent it."""
        return producer.startswith(self._prefix) and producer[len(self._prefix) :].isdecimal()

    def add(self, topic: str, at: ReadPosition, producer: str, sequence_id: int, number: int) -> None:
        """``number``: the message's print."""
        if not self.is_ours(producer) or sequence_id < 0:
            self.others += 1
            return
        task = int(producer[len(self._prefix) :])
        batch, row, _ = RowNumber.of(sequence_id)
        seen = self.rows.setdefault((batch, task), bytearray())
        if row >= len(seen):
            seen.extend(bytes(row + 1 - len(seen)))
        if seen[row] and len(self.repeated) < _LISTED:
            self.repeated.append(
                Discrepancy(f"batch {batch}", f"{topic}: the message at {at} repeats row {row} of task {task}")
            )
        seen[row] = min(seen[row] + 1, 255)
        self.prints[batch] = self.prints.get(batch, 0) + number

    def add_sealed(self, producer: str, sequence_id: int, count: int) -> None:
        """An encrypted entry, or a chunk of an encrypted message, of which one counts (``count`` 1)."""
        if not self.is_ours(producer) or sequence_id < 0:
            self.others += count
            return
        batch = RowNumber.of(sequence_id).batch
        self.sealed[batch] = self.sealed.get(batch, 0) + count


def unfinished(manifests: Sequence[Manifest], committed: int, first: int = 0) -> list[Discrepancy]:
    """The last manifest against the last micro-batch that Spark knows as finished, -1 if none is."""
    if committed < first or (manifests and manifests[-1].batch >= committed):
        return []
    return [Discrepancy(f"batch {committed}", "Spark has finished it, and there is no manifest")]


def delivered(
    manifests: Sequence[Manifest],
    name: str,
    seen: DeliveredRows,
    first: int = 0,
    *,
    contents: bool = True,
    under_way: Collection[int] = (),
) -> list[Discrepancy]:
    """An output topic against all manifests from batch ``first`` on; without ``contents`` only which rows are there.

    ``under_way``: micro-batches that the checkpoint knows besides, whose rows may be there or not.
    """
    found = list(seen.repeated)
    known = {one.batch: one.outputs[name] for one in manifests if name in one.outputs}
    last = max(known, default=-1)
    written = [one for batch, one in known.items() if batch >= first and one.rows]
    if written and not seen.there:
        text = (
            f"{written[0].target}: {sum(one.rows for one in written)} rows were written and none is there: a topic "
            "without a subscription is trimmed, and deleted when it is idle, unless its retention forbids"
        )
        return [Discrepancy(f"output {name}", text)]
    for batch in sorted({batch for batch, _ in seen.rows} | seen.sealed.keys() | known.keys()):
        if batch < first:
            continue
        where = f"batch {batch}, output {name}"
        output = known.get(batch)
        if output is None:
            if batch > last and batch not in under_way:
                found.append(Discrepancy(where, f"rows are in the topic, and {_UNTOLD}"))
            continue
        hidden = seen.sealed.get(batch, 0)
        found += _whole(where, output, {task: rows for (one, task), rows in seen.rows.items() if one == batch}, hidden)
        if contents and not hidden and not found and print_text(seen.prints.get(batch, 0)) != output.print:
            found.append(Discrepancy(where, f"{output.target}: as many rows as were written, but with other contents"))
    return found


def committed(
    manifests: Sequence[Manifest],
    name: str,
    commits: Mapping[int, Sequence[int]],
    first: int,
    whole: bool,
    under_way: Collection[int] = (),
) -> list[Discrepancy]:
    """A table: rows of its commits by micro-batch. Without its ``whole`` history old ones may be unknown."""
    known = {one.batch: one.outputs[name] for one in manifests if name in one.outputs}
    last, oldest = max(known, default=-1), min(commits, default=0)
    found = []
    for batch in sorted(known.keys() | commits.keys()):
        where, there = f"batch {batch}, output {name}", commits.get(batch, ())
        output = known.get(batch)
        if batch < first or (not whole and batch < oldest):
            continue
        if output is None:
            if batch > last and batch not in under_way:
                found.append(Discrepancy(where, f"a commit is in the table, and {_UNTOLD}"))
        elif len(there) > 1:
            found.append(Discrepancy(where, f"{output.target}: it was committed {len(there)} times"))
        elif sum(there) != output.rows:
            found.append(
                Discrepancy(where, f"{output.target}: {output.rows} rows were written, the commit has {sum(there)}")
            )
    return found


class TableRows(NamedTuple):
    """What is in a table now of some micro-batches, whose rows may stand together."""

    batches: frozenset[int]
    rows: int
    print: int | None
    """The sum of `rows.row_print`; None if the contents were not read."""
    remark: str = ""
    """What was done to them."""


def kept(manifests: Sequence[Manifest], name: str, tables: Iterable[TableRows], first: int = 0) -> list[Discrepancy]:
    """The rows of a table's files against the manifests, for micro-batches that have one."""
    known = {one.batch: one.outputs[name] for one in manifests if name in one.outputs}
    found = []
    for there in tables:
        if not there.batches <= known.keys() or max(there.batches) < first:
            continue
        written = sum(known[batch].rows for batch in there.batches)
        where = f"{named(there.batches)}, output {name}"
        target = known[min(there.batches)].target
        if there.rows != written:
            text = f"{written} rows were written and {there.rows} are there{there.remark}"
            found.append(Discrepancy(where, f"{target}: {text}"))
        elif there.print is not None and all(known[batch].by == BY_NAMES for batch in there.batches):
            total = sum(int(known[batch].print, 16) for batch in there.batches)
            if print_text(there.print) != print_text(total):
                text = f"as many rows as were written, but with other contents{there.remark}"
                found.append(Discrepancy(where, f"{target}: {text}"))
    return found


def named(batches: Collection[int]) -> str:
    """``batch 3``, ``batches 3 to 7``, ``batches 3, 5, 8 and 4 more``."""
    numbers = sorted(batches)
    if len(numbers) == 1:
        return f"batch {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"batches {numbers[0]} to {numbers[-1]}"
    more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
    return f"batches {', '.join(map(str, numbers[:_LISTED]))}{more}"


def _whole(where: str, output: OutputPart, tasks: Mapping[int, bytearray], hidden: int) -> Iterator[Discrepancy]:
    there = sum(sum(rows) for rows in tasks.values()) + hidden
    for task, rows in () if hidden else sorted(tasks.items()):
        missing = [row for row, times in enumerate(rows) if not times]
        if missing:
            listed = ", ".join(map(str, missing[:_LISTED])) + (" and more" if len(missing) > _LISTED else "")
            yield Discrepancy(where, f"{output.target}: of task {task} {len(missing)} rows are missing: {listed}")
    if there != output.rows:
        yield Discrepancy(where, f"{output.target}: {output.rows} rows were written and {there} are there")
