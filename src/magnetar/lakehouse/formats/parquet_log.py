"""The commit log of a directory of Parquet files: format and replay; pure.

    _magnetar_log/00000000000000000012.json            one commit
    _magnetar_log/00000000000000000031.checkpoint.json everything up to it, so that a start reads little
    country=NL/part-...-00000.zstd.parquet             files as every reader of Parquet expects them
    _staging/<transaction>/country=NL/part-....staged  written, and not committed, or not in their place yet
    _retired/country=NL/part-....zstd.parquet          replaced by compaction, kept for earlier versions

A commit is a JSON object: ``v`` (1), ``time`` (ms), ``operation``, ``note`` (`history.Note`), ``schema`` (Arrow's IPC
form in base64; ``columns`` is the same in readable form), ``partitioning`` (column names), ``add`` (files: path,
staged, size, rows, partition) and ``remove`` (paths). The writer that creates the file of a number first has made that
commit; from then on its files are the table's, wherever they stand. Moving them from ``_staging`` into their place
comes after and may be done by any process (`ParquetTable.settle`), so plain readers of the directory see only committed
files.
"""

from __future__ import annotations

import base64
import json
import posixpath
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.history import Commit, Note
from magnetar.lakehouse.model.layout import STAGED_SUFFIX, SUFFIX
from magnetar.model.errors import InvalidValueError

DIRECTORY: Final = "_magnetar_log"
RETIRED: Final = "_retired"
_FORMAT: Final = 1
_CHECKPOINT: Final = ".checkpoint.json"


def commit_path(version: int) -> str:
    """Return the path of a commit."""
    return f"{DIRECTORY}/{version:020}.json"


def checkpoint_path(version: int) -> str:
    return f"{DIRECTORY}/{version:020}{_CHECKPOINT}"


def version_of(path: str) -> tuple[int, bool] | None:
    """Return a file's version, and whether it is a checkpoint; None for another file."""
    name = posixpath.basename(path)
    number, _, rest = name.partition(".")
    if not number.isdecimal() or rest not in ("json", _CHECKPOINT[1:]):
        return None
    return int(number), rest != "json"


def final_path(staged: str) -> str:
    """Return the path that a staged file is moved to."""
    return "/".join(staged.split("/")[2:]).removesuffix(STAGED_SUFFIX) + SUFFIX


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of the table, and where it was staged."""

    file: DataFile
    staged: str


@dataclass
class TableState:
    """The state of the table after the commits applied so far."""

    version: int = -1
    time_ms: int = 0
    schema: pa.Schema | None = None
    partitioning: list[str] = field(default_factory=list)
    files: dict[str, TableFile] = field(default_factory=dict)
    retired: dict[str, int] = field(default_factory=dict)
    """Time of removal, ms, by path of the removed file."""
    transactions: dict[str, int] = field(default_factory=dict)

    def apply(self, version: int, commit: dict[str, Any]) -> None:
        """Apply the next commit. Raises InvalidValueError if it is not the next, or of a later format."""
        if version != self.version + 1:
            raise InvalidValueError(f"the log lacks commits {self.version + 1} to {version - 1}")
        _check(commit, commit_path(version))
        self.version, self.time_ms = version, commit["time"]
        if commit.get("schema"):
            self.schema = decode_schema(commit["schema"])
        self.partitioning = commit.get("partitioning", self.partitioning)
        for path in commit["remove"]:
            del self.files[path]
            self.retired[path] = commit["time"]
        for path in commit.get("forget", ()):
            self.retired.pop(path, None)
        for one in commit["add"]:
            self.files[one["path"]] = table_file(one)
        note = Note.from_dict(commit["note"])
        if note.app is not None and note.batch is not None:
            self.transactions[note.app] = max(note.batch, self.transactions.get(note.app, -1))

    def to_json(self) -> bytes:
        """Encode the state as a checkpoint."""
        content = {
            "v": _FORMAT,
            "version": self.version,
            "time": self.time_ms,
            "schema": None if self.schema is None else encode_schema(self.schema),
            "partitioning": self.partitioning,
            "files": [_plain(entry) for entry in self.files.values()],
            "retired": self.retired,
            "transactions": self.transactions,
        }
        return json.dumps(content).encode()

    @staticmethod
    def from_json(data: bytes) -> TableState:
        content = json.loads(data)
        _check(content, "checkpoint")
        return TableState(
            content["version"],
            content["time"],
            None if content["schema"] is None else decode_schema(content["schema"]),
            content["partitioning"],
            {one["path"]: table_file(one) for one in content["files"]},
            content["retired"],
            content["transactions"],
        )


def encode_commit(
    time_ms: int,
    operation: str,
    note: Note,
    *,
    schema: pa.Schema | None = None,
    partitioning: list[str] | None = None,
    add: list[TableFile] | None = None,
    remove: list[str] | None = None,
    forget: list[str] | None = None,
) -> dict[str, Any]:
    """Return the content of a commit's file; what is None stays as it was."""
    commit: dict[str, Any] = {"v": _FORMAT, "time": time_ms, "operation": operation, "note": note.to_dict()}
    if schema is not None:
        commit["columns"] = {column.name: str(column.type) for column in schema}
        commit["schema"] = encode_schema(schema)
    if partitioning is not None:
        commit["partitioning"] = partitioning
    commit["add"] = [_plain(entry) for entry in add or ()]
    commit["remove"] = list(remove or ())
    if forget:
        commit["forget"] = forget
    return commit


def summary(version: int, commit: dict[str, Any]) -> Commit:
    """Return a commit as the history shows it."""
    note = Note.from_dict(commit["note"])
    rows = sum(one["rows"] for one in commit["add"])
    return Commit(
        version,
        commit["time"],
        commit["operation"],
        note.app,
        note.batch,
        note.positions,
        note.since,
        rows,
        len(commit["add"]),
    )


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _check(content: dict[str, Any], where: str) -> None:
    if content.get("v") != _FORMAT:
        raise InvalidValueError(
            f"{where} is of format {content.get('v')!r}, this release knows {_FORMAT}: use a later release of magnetar"
        )


def _plain(entry: TableFile) -> dict[str, Any]:
    file = entry.file
    return {
        "path": file.path,
        "staged": entry.staged,
        "size": file.size,
        "rows": file.rows,
        "partition": [value if isinstance(value, int | None) else str(value) for value in file.partition],
    }


def table_file(one: dict[str, Any]) -> TableFile:
    """Parse a file that a commit adds."""
    return TableFile(DataFile(one["path"], one["size"], one["rows"], tuple(one["partition"])), one["staged"])
