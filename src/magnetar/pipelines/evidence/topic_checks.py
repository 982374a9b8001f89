"""Checks that an output topic holds every row of every micro-batch once. Pure.

Rows carry their number: producer ``spark.<query>/<output>.<task>``, sequence id = micro-batch and row of the task
(`spark.sink.sequence_ids`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from magnetar.client.read_position import ReadPosition
from magnetar.pipelines.evidence.discrepancy import LISTED_MAX, NO_MANIFEST, Discrepancy
from magnetar.pipelines.state.manifest import Manifest, OutputPart, print_text
from magnetar.spark.sink.sequence_ids import SequenceId


class DeliveredRows:
    """The rows of one output in its topic, collected message by message in the order of each topic."""

    def __init__(self, query: str, output: str) -> None:
        self._prefix = f"spark.{query}/{output}."
        self.rows: dict[tuple[int, int], bytearray] = {}
        """How often each row is there (up to 255), by micro-batch and task."""
        self.prints: dict[int, int] = {}
        self.others = 0
        """Number of messages of other producers."""
        self.repeated: list[Discrepancy] = []
        self.sealed: dict[int, int] = {}
        """Messages in entries that no key opens, by micro-batch. Which rows they are is unknown."""

    @property
    def there(self) -> int:
        """Number of messages of this output."""
        return sum(sum(one) for one in self.rows.values()) + sum(self.sealed.values())

    def is_ours(self, producer: str) -> bool:
        """Return whether this output sent it."""
        return producer.startswith(self._prefix) and producer[len(self._prefix) :].isdecimal()

    def add(self, topic: str, at: ReadPosition, producer: str, sequence_id: int, number: int) -> None:
        """Add a message; ``number`` is its print."""
        if not self.is_ours(producer) or sequence_id < 0:
            self.others += 1
            return
        task = int(producer[len(self._prefix) :])
        batch, row, _ = SequenceId.of(sequence_id)
        seen = self.rows.setdefault((batch, task), bytearray())
        if row >= len(seen):
            seen.extend(bytes(row + 1 - len(seen)))
        if seen[row] and len(self.repeated) < LISTED_MAX:
            self.repeated.append(
                Discrepancy(f"batch {batch}", f"{topic}: the message at {at} repeats row {row} of task {task}")
            )
        seen[row] = min(seen[row] + 1, 255)
        self.prints[batch] = self.prints.get(batch, 0) + number

    def add_sealed(self, producer: str, sequence_id: int, count: int) -> None:
        """Add an encrypted entry, or a chunk of an encrypted message; only one of its chunks has ``count`` 1."""
        if not self.is_ours(producer) or sequence_id < 0:
            self.others += count
            return
        batch = SequenceId.of(sequence_id).batch
        self.sealed[batch] = self.sealed.get(batch, 0) + count


def check_delivered(
    manifests: Sequence[Manifest],
    name: str,
    seen: DeliveredRows,
    first: int = 0,
    *,
    contents: bool = True,
    under_way: Collection[int] = (),
) -> list[Discrepancy]:
    """Check an output topic against all manifests from batch ``first`` on; without ``contents`` only which rows are
    there.

    ``under_way``: further micro-batches of the checkpoint, whose rows may be there or not.
    """
    found = list(seen.repeated)
    repeated = {one.where for one in seen.repeated}
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
                found.append(Discrepancy(where, f"rows are in the topic, and {NO_MANIFEST}"))
            continue
        hidden = seen.sealed.get(batch, 0)
        wrong = list(
            _whole(where, output, {task: rows for (one, task), rows in seen.rows.items() if one == batch}, hidden)
        )
        found += wrong
        # What is missing or repeated explains other contents, of this micro-batch only.
        explained = bool(wrong) or f"batch {batch}" in repeated
        if contents and not hidden and not explained and print_text(seen.prints.get(batch, 0)) != output.print:
            found.append(Discrepancy(where, f"{output.target}: as many rows as were written, but with other contents"))
    return found


def _whole(where: str, output: OutputPart, tasks: Mapping[int, bytearray], hidden: int) -> Iterator[Discrepancy]:
    there = sum(sum(rows) for rows in tasks.values()) + hidden
    for task, rows in () if hidden else sorted(tasks.items()):
        missing = [row for row, times in enumerate(rows) if not times]
        if missing:
            listed = ", ".join(map(str, missing[:LISTED_MAX])) + (" and more" if len(missing) > LISTED_MAX else "")
            yield Discrepancy(where, f"{output.target}: of task {task} {len(missing)} rows are missing: {listed}")
    if there != output.rows:
        yield Discrepancy(where, f"{output.target}: {output.rows} rows were written and {there} are there")
