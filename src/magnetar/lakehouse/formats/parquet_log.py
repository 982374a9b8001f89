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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.lakehouse.model.data_file import DataFile
from magnetar.lakehouse.model.history import Commit, Note
from magnetar.lakehouse.model.layout import STAGED_SUFFIX, SUFFIX
from magnetar.lakehouse.model.library_reason import reason_of
from magnetar.model.errors import InvalidValueError

DIRECTORY: Final = "_magnetar_log"
RETIRED: Final = "_retired"
_FORMAT: Final = 1
_LAST_MS: Final = 253_402_300_799_999
"""The last moment of the year 9999."""
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
        """Apply the next commit. Raises InvalidValueError if it is not the next, or not whole; then nothing changed."""
        if version != self.version + 1:
            raise InvalidValueError(f"the log lacks commits {self.version + 1} to {version - 1}")
        with whole(commit_path(version)):
            schema = decode_schema(commit["schema"]) if commit.get("schema") else self.schema
            added = {one["path"]: table_file(one) for one in commit["add"]}
            removed = list(commit["remove"])
            unknown = next((path for path in removed if path not in self.files), None)
            if unknown is not None:
                raise ValueError(f"it removes {unknown}, which the table does not have")
            if len(set(removed)) < len(removed):
                raise ValueError("it removes a file twice")
            forgotten = _texts(commit.get("forget", []), "what it forgets")
            partitioning = _texts(commit.get("partitioning", self.partitioning), "its partition columns")
            note = Note.from_dict(commit["note"])
        self.version, self.time_ms, self.schema = version, commit["time"], schema
        self.partitioning = partitioning
        for path in removed:
            del self.files[path]
            self.retired[path] = commit["time"]
        for path in forgotten:
            self.retired.pop(path, None)
        self.files |= added
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
    def from_json(data: bytes, where: str = "checkpoint") -> TableState:
        """Decode a checkpoint. Raises InvalidValueError."""
        content = decoded(data, where)
        with whole(where):
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
    with whole(commit_path(version)):
        note = Note.from_dict(commit["note"])
        added = [table_file(one) for one in commit["add"]]
        return Commit(
            version,
            commit["time"],
            commit["operation"],
            note.app,
            note.batch,
            note.positions,
            note.since,
            sum(one.file.rows for one in added),
            len(added),
        )


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def decode_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def decoded(data: bytes, where: str) -> dict[str, Any]:
    """Decode a file of the log. Raises InvalidValueError if it is none, or of a later format."""
    with whole(where):
        content = json.loads(data)
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
        if isinstance(content.get("v"), int) and content["v"] > _FORMAT:
            raise InvalidValueError(
                f"{where} is of format {content['v']}, this release knows {_FORMAT}: use a later release of magnetar"
            )
        if content.get("v") != _FORMAT:
            raise ValueError("it does not say its format")
        if not isinstance(content["time"], int) or not 0 <= content["time"] <= _LAST_MS:
            raise ValueError("its time is none")
    return content


@contextmanager
def whole(where: str) -> Iterator[None]:
    """Raise InvalidValueError for whatever is wrong with the file of the log that is taken apart."""
    try:
        yield
    except InvalidValueError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidValueError(
            f"{where} is damaged ({reason_of(error)}): put the file back from a copy; without it the table's history "
            "ends before it"
        ) from error


def _texts(value: Any, what: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{what} are no list of texts")
    return value


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
    if not isinstance(one["rows"], int) or not isinstance(one["size"], int):
        raise ValueError(f"rows and bytes of {one['path']} are no numbers")
    return TableFile(DataFile(one["path"], one["size"], one["rows"], tuple(one["partition"])), one["staged"])
