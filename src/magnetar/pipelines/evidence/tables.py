"""The tables of a pipeline against its manifests: commits, files, rows, contents.

Rows are read from the data files that the table's own log names, in Spark's tasks, and not through an engine, so what
is missing or changed is known by file and micro-batch. Where files were merged since, their micro-batches are compared
in total; where rows of other writers were merged with them, they cannot be, and the report says so.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.formats.kinds import open_table
from magnetar.lakehouse.formats.table import Table
from magnetar.lakehouse.model.library_reason import reason_of
from magnetar.lakehouse.model.lineage import FileGroup, LoggedFile, groups, live_files
from magnetar.lakehouse.model.options import TableKind
from magnetar.model.errors import InvalidValueError
from magnetar.pipelines.declaration.model import TableSink, target_of
from magnetar.pipelines.evidence.discrepancy import Discrepancy, named
from magnetar.pipelines.evidence.table_checks import TableRows, check_committed, check_kept
from magnetar.pipelines.execution import expressions, outputs
from magnetar.pipelines.state.manifest import BY_NAMES, Manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from magnetar.lakehouse.files.file_reader import FileReader

_NAMED: Final = 5
_FOREIGN: Final = (
    "is not of this table's log, and programs that read the directory without that log read it, too; move it away"
)
_GROUP, _WRONG, _ROW = "group", "wrong", "row"


class TableReport(NamedTuple):
    """What was found at one table."""

    line: str
    findings: list[Discrepancy]
    unseen: list[str]
    """What was not looked at, and why."""


class ManifestClaims(NamedTuple):
    """What the manifests say of one table's rows."""

    manifests: Sequence[Manifest]
    """All that there are."""
    since: int
    under_way: Callable[[], Collection[int]]
    """Micro-batches that may be unfinished; called when the table has been read."""


def verify_table(spark: SparkSession | None, sink: TableSink, app: str, claims: ManifestClaims) -> TableReport:
    """Check one table. Without Spark, rows are counted by the table's log and not read."""
    where = f"sink {sink.name}"
    try:
        options = outputs.table_options(sink)
        if outputs.is_missing(options.path):
            return _absent(sink, claims)
        table = open_table(options)
        return _look(spark, table, sink, app, claims)
    except Exception as error:
        # A library may raise anything for a damaged table; it is a finding of that table.
        text = f"{target_of(sink)} cannot be read: {reason_of(error)}"
        return TableReport(f"{where}: not read", [Discrepancy(where, text)], [])


def _absent(sink: TableSink, claims: ManifestClaims) -> TableReport:
    """Report a table that is not there, which is as it should be while nothing was written to it."""
    where = f"sink {sink.name}"
    line = f"{where}: {target_of(sink)} is not there"
    written = [one.outputs[sink.name] for one in claims.manifests if sink.name in one.outputs]
    rows, target = sum(one.rows for one in written), target_of(sink)
    if not rows:
        return TableReport(f"{line} yet: nothing was written to it", [], [])
    others = sorted({one.target for one in written if one.rows} - {target})
    elsewhere = f"; the manifests name {', '.join(others)}" if others else ""
    text = f"there is no {target}, and {rows:,} rows were written to it{elsewhere}"
    return TableReport(line, [Discrepancy(where, text)], [])


def _look(spark: SparkSession | None, table: Table, sink: TableSink, app: str, claims: ManifestClaims) -> TableReport:
    where = f"sink {sink.name}"
    if not table.exists():
        return _absent(sink, claims)
    # Listed before the log is read: a file is committed first and comes into its place then.
    plain = _plain_files(sink)
    history = table.history()
    commits: dict[int, list[int]] = {}
    for one in history:
        if one.app == app and one.batch is not None:
            commits.setdefault(one.batch, []).append(one.rows or 0)
    # Iceberg counts from 1.
    whole = not history or min(one.version for one in history) <= int(sink.format == TableKind.ICEBERG.value)
    findings = check_committed(claims.manifests, sink.name, commits, claims.since, whole, claims.under_way())
    line = f"{where}: {len(commits):,} commits of {sink.format} {sink.path}"
    written = {one.batch for one in claims.manifests if sink.name in one.outputs and one.outputs[sink.name].rows}
    written = {batch for batch in written if batch >= claims.since}
    try:
        log = table.file_log()
    except InvalidValueError as error:
        return TableReport(line, findings, [f"{where}: its rows: {error}"])
    unseen = []
    if forgotten := written - commits.keys() if not whole else set():
        unseen.append(f"{where}: commits of {named(forgotten)}: the table's history does not go back so far")
    files, found = live_files(log), groups(log, app)
    reader = table.reader()
    known = {file.path for commit in log for file in commit.added}
    findings += _of_files(where, sink.path, dict.fromkeys(plain - known, _FOREIGN))
    wrong = reader.differing(files)
    findings += _of_files(where, sink.path, wrong)
    ours = [one for one in found if one.batches]
    if elsewhere := [file for one in ours for file in one.files if not file.places]:
        unseen.append(f"{where}: {len(elsewhere):,} files that are not below {sink.path}")
    if mixed := {batch for one in ours if one.others for batch in one.batches} & written:
        unseen.append(f"{where}: rows of {named(mixed)}: they were put together with rows of others")
    clean = [one for one in ours if not one.others and all(file.places for file in one.files)]
    readable = [
        one for one in clean if max(one.batches) >= claims.since and not any(file.path in wrong for file in one.files)
    ]
    if lost := {batch for one in ours if any(file.path in wrong for file in one.files) for batch in one.batches}:
        findings.append(Discrepancy(where, f"rows of {named(lost)} were in files that are gone or changed"))
    if spark is None:
        if written:
            unseen.append(f"{where}: contents of its rows, which Spark reads")
        by_log = [
            TableRows(one.batches, sum(file.rows or 0 for file in one.files), None, _remark(one)) for one in clean
        ]
        findings += check_kept(claims.manifests, sink.name, by_log, claims.since)
        return TableReport(f"{line}, {len(files):,} files", findings, unseen)
    now, broken = _read(spark, reader, readable)
    findings += [Discrepancy(where, f"{sink.path}: {text}") for text in broken]
    findings += check_kept(claims.manifests, sink.name, now, claims.since)
    if old := {one.batch for one in claims.manifests if one.batch in written and one.outputs[sink.name].by != BY_NAMES}:
        unseen.append(
            f"{where}: contents of {named(old)}, whose manifests are of an earlier release; rows were counted"
        )
    read = sum(one.rows for one in now)
    return TableReport(f"{line}, {len(files):,} files, {read:,} rows read again", findings, unseen)


def _plain_files(sink: TableSink) -> set[str]:
    """Return the files that readers of a plain directory take for a table's; none where they follow its log."""
    if sink.format != TableKind.PARQUET.value:
        return set()
    options = outputs.table_options(sink)
    paths = (path for path, _, _ in FileStore(options.path, options.storage).list())
    # What Spark and others leave out of a directory; of partitions, a column's name may begin with _.
    return {
        path
        for path in paths
        if not any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in path.split("/"))
    }


def _remark(group: FileGroup) -> str:
    if not group.rearranged:
        return ""
    versions = ", ".join(map(str, group.rearranged[:_NAMED])) + (" and more" if len(group.rearranged) > _NAMED else "")
    return f"; files were rewritten or removed by version {versions} of the table"


def _of_files(where: str, path: str, wrong: dict[str, str]) -> list[Discrepancy]:
    found = [Discrepancy(where, f"{path}: file {name} {text}") for name, text in sorted(wrong.items())[:_NAMED]]
    if len(wrong) > _NAMED:
        found.append(Discrepancy(where, f"{path}: the same of {len(wrong) - _NAMED:,} more files"))
    return found


def _read(spark: SparkSession, reader: FileReader, work: Sequence[FileGroup]) -> tuple[list[TableRows], list[str]]:
    """Return rows and prints of each group as its files have them, and what is wrong with files that cannot be read."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    tasks = [(index, pickle.dumps(file)) for index, group in enumerate(work) for file in group.files]
    if not tasks:
        return [TableRows(one.batches, 0, 0, _remark(one)) for one in work], []
    row = from_arrow_schema(reader.schema, prefer_timestamp_ntz=True)
    schema = StructType([StructField(_GROUP, IntegerType()), StructField(_WRONG, StringType()), StructField(_ROW, row)])
    spread = spark.sparkContext.parallelize(tasks, min(len(tasks), 10_000))
    frame = spark.createDataFrame(spread, "task INT, file BINARY").mapInArrow(partial(_rows_of, reader), schema)
    number = expressions.row_print(reader.schema.names, _ROW)
    counts = frame.withColumn("number", f.when(f.col(_WRONG).isNull(), number)).groupBy(_GROUP)
    sums = counts.agg(
        f.count("number").alias("rows"), f.collect_set(_WRONG).alias(_WRONG), *expressions.sums(f.col("number"))
    )
    broken: list[str] = []
    now = {index: TableRows(one.batches, 0, 0, _remark(one)) for index, one in enumerate(work)}
    for one in sums.collect():
        broken += one[_WRONG]
        if one[_WRONG]:
            del now[one[_GROUP]]
        else:
            total = expressions.sum_of(one["__high"], one["__low"])
            now[one[_GROUP]] = now[one[_GROUP]]._replace(rows=one["rows"], print=total)
    return list(now.values()), sorted(broken)


def _rows_of(reader: FileReader, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield, in a task, the rows of files, or what is wrong with them."""
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

    struct = pa.struct(list(reader.schema))
    for batch in batches:
        for group, packed in zip(batch["task"].to_pylist(), batch["file"].to_pylist(), strict=True):
            file: LoggedFile = pickle.loads(packed)
            try:
                table = reader.read(file).combine_chunks()
                if file.rows is not None and file.rows != len(table):
                    raise InvalidValueError(f"it has {len(table):,} rows, and the table's log says {file.rows:,}")
            except Exception as error:
                # Any damage at all; the other files are read nevertheless.
                texts = [f"file {file.path} cannot be read as it was written: {error}"]
                columns = [pa.array([group], pa.int32()), pa.array(texts), pa.nulls(1, struct)]
                yield pa.RecordBatch.from_arrays(columns, names=[_GROUP, _WRONG, _ROW])
                continue
            for part in table.to_batches(max_chunksize=10_000):
                count = part.num_rows
                values = pa.StructArray.from_arrays(part.columns, fields=list(reader.schema))
                columns = [pa.array([group] * count, pa.int32()), pa.nulls(count, pa.string()), values]
                yield pa.RecordBatch.from_arrays(columns, names=[_GROUP, _WRONG, _ROW])
