"""The families of Apache Pulsar's /metrics beside those that a running broker shows: served, not applicable, wrong.

``pulsar_metrics.tsv`` has every family of Apache Pulsar 4.0.8 with its type and labels, and of those that are not shown
here the reason. A broker in this process is given work of every kind; a family that is called served and is not shown,
or has another type or other labels, is wrong.
"""

from __future__ import annotations

import asyncio
import csv
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from magnetar.app.node import Node
from magnetar.config.settings import Settings
from tools.coverage.metrics_work import SETTINGS, STAGES, Work

TABLE: Final = Path(__file__).with_name("pulsar_metrics.tsv")
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+")
_LABEL: Final = re.compile(r'([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"')
_SUFFIXES: Final = ("_total", "_bucket", "_count", "_sum", "_created")
_PENDING_ACK: Final = frozenset({"subscription"})
"""Apache Pulsar shows the storage of pending acknowledgements, a label of theirs; here they have none of their own."""
_LATER: Final = frozenset({"partition", "quantile", "le", "code", "success"})
"""Labels that depend on settings, or belong to the kind of family."""


class Known(NamedTuple):
    """One family of Apache Pulsar."""

    name: str
    kind: str
    labels: frozenset[str]
    sampled: bool
    """Whether it has samples in a broker that was given work; of others there is a TYPE line alone."""
    verdict: str
    reason: str


class Shown(NamedTuple):
    """One family of a page."""

    kind: str
    labels: frozenset[str]
    """Of all its samples together, without ``cluster``."""


def known() -> list[Known]:
    """Every family of the table."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        return [
            Known(
                row["name"],
                row["type"],
                frozenset(row["labels"].split()),
                bool(row["suffixes"]),
                row["verdict"],
                row["reason"] or "",
            )
            for row in rows
        ]


def families_of(page: str) -> dict[str, Shown]:
    """The families of a page, named as in the table: counters without ``_total`` unless it is part of the name."""
    kinds: dict[str, str] = {}
    labels: dict[str, set[str]] = {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        elif line and not line.startswith("#"):
            found = _SAMPLE.match(line)
            assert found is not None, line
            home = _home(found[1], kinds)
            labels.setdefault(home, set()).update(_LABEL.findall(found[2] or ""))
    return {name: Shown(kind, frozenset(labels.get(name, set()) - {"cluster"})) for name, kind in kinds.items()}


def _home(sample: str, kinds: Mapping[str, str]) -> str:
    if sample in kinds:
        return sample
    for suffix in _SUFFIXES:
        name = sample.removesuffix(suffix)
        if name in kinds:
            return name
    raise AssertionError(f"{sample} stands under no TYPE line")


def find(name: str, shown: Mapping[str, Shown]) -> Shown | None:
    """The family of that name in Pulsar's table."""
    found = shown.get(name)
    return shown.get(f"{name}_total") if found is None else found


def differences(shown: Mapping[str, Shown]) -> Iterator[str]:
    """What the table says and the page does not, and the other way round."""
    table = known()
    served = {family.name for family in table if family.verdict == "served"}
    for family in table:
        found = find(family.name, shown)
        if family.verdict == "served":
            if found is None and (family.sampled or not family.kind):
                yield f"{family.name}: not shown"
            elif found is None or not family.sampled:
                continue
            elif found.kind != family.kind:
                yield f"{family.name}: {found.kind}, in Apache Pulsar {family.kind}"
            elif family.labels - found.labels - _LATER - _PENDING_ACK:
                yield f"{family.name}: without {sorted(family.labels - found.labels - _LATER - _PENDING_ACK)}"
            elif found.labels - family.labels - _OPTIONAL:
                yield f"{family.name}: with {sorted(found.labels - family.labels - _OPTIONAL)}"
        elif found is not None and family.name.removesuffix("_total") not in served:
            yield f"{family.name}: shown, though called not applicable ({family.reason})"
    names = {family.name for family in table}
    for name in shown:
        own = name.startswith("magnetar_") or name.endswith("_created")
        if not own and name not in names and name.removesuffix("_total") not in names:
            yield f"{name}: Apache Pulsar has no such family"


_OPTIONAL: Final = frozenset({"partition", "consumer_name", "consumer_id", "quantile", "le"})


async def page_after_work() -> str:
    """What a broker shows that has done everything."""
    with tempfile.TemporaryDirectory(prefix="magnetar-coverage-") as directory:
        copies = f"file://{directory}/copies"
        node = Node(Path(directory, "data"), Settings(**SETTINGS, offloadUrl=copies))
        await node.start()
        work = Work(node)
        try:
            await node.complete()
            for stage in STAGES:
                await stage.work(work)
            return await work.scraped()
        finally:
            with suppress(OSError):
                await work.close()
            await node.stop()


def main() -> int:
    """Print the counts; return 1 if something is wrong."""
    wrong = list(differences(families_of(asyncio.run(page_after_work()))))
    table = known()
    for line in wrong:
        print(line)
    served = sum(family.verdict == "served" for family in table)
    print(f"{served} served, {len(table) - served} not applicable with a reason, {len(wrong)} wrong")
    return 1 if wrong else 0
