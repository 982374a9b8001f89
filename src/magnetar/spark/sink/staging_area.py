"""Micro-batches as files: what a shuffle gave is stored once and sent from there, so that a repetition sends the same.

    <directory>/<query id>/<micro-batch>/<task>-<random>.arrow     rows, as an Arrow file
    <directory>/<query id>/<micro-batch>/settled.json              which of the files are the micro-batch, in order

Tasks store, the driver settles and sends. The first attempt to settle decides: a repetition finds the list of the first
attempt and sends that, whatever its own tasks have stored, with the same names and numbers (`sequences`), so what the
broker has already is skipped. A micro-batch is removed when the next one is sent, since Spark does not repeat it then.

The directory must be reached by all executors and the driver: a path on a shared file system, or a URI that Arrow
knows (``s3://``, ``gs://``, ``hdfs://``, ``abfss://``). Many queries may share one. In local directories a micro-batch
is settled when all of it is durable (`durability`), and nothing is sent before: after a loss of power it is there as it
was sent, or nothing of it was sent.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]  # the same

from magnetar.model.errors import InvalidValueError
from magnetar.spark.durable_files import make_directory, sync, write_whole

_SETTLED: Final = "settled.json"


class StagingArea:
    """The stored micro-batches of one query."""

    def __init__(self, directory: str, query: str) -> None:
        self._files, root = _file_system(directory)
        self._root = f"{root.rstrip('/')}/{query}"
        self._local = isinstance(self._files, pa_fs.LocalFileSystem)

    def put(self, batch: int, task: int, batches: Iterator[Any]) -> str | None:
        """Store one task's record batches and return the file's path, None if there are no rows."""
        filled = (one for one in batches if one.num_rows)
        first = next(filled, None)
        if first is None:
            return None
        path = f"{self._root}/{batch}/{task:05}-{uuid.uuid4().hex}.arrow"
        self._make_directory(batch)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            self._files.open_output_stream(path) as stream,
            pa.ipc.new_file(stream, first.schema, options=options) as file,
        ):
            file.write_batch(first)
            for one in filled:
                file.write_batch(one)
        if self._local:
            sync(Path(path))
        return path

    def settle(self, batch: int, paths: list[str]) -> list[str]:
        """Return which files are the micro-batch: these, unless an earlier attempt has settled it."""
        settled = f"{self._root}/{batch}/{_SETTLED}"
        if self._files.get_file_info(settled).type != pa_fs.FileType.NotFound:
            with self._files.open_input_stream(settled) as stream:
                found = json.loads(stream.read())
            return [f"{self._root}/{batch}/{name}" for name in found]
        names = [path.rpartition("/")[2] for path in sorted(paths)]
        self._make_directory(batch)
        if self._local:
            # The files' names: the process that made the directories may have died before it synced them.
            for position in list(Path(settled).parents)[:3]:
                sync(position)
            write_whole(Path(settled), json.dumps(names))
        else:
            unfinished = f"{settled}.{uuid.uuid4().hex}"
            with self._files.open_output_stream(unfinished) as stream:
                stream.write(json.dumps(names).encode())
            self._files.move(unfinished, settled)
        return [f"{self._root}/{batch}/{name}" for name in names]

    def read(self, paths: list[str]) -> Iterator[Any]:
        """Yield the record batches of these files."""
        for path in paths:
            with self._files.open_input_file(path) as file, pa.ipc.open_file(file) as reader:
                for index in range(reader.num_record_batches):
                    yield reader.get_batch(index)

    def _make_directory(self, batch: int) -> None:
        path = f"{self._root}/{batch}"
        if self._local:
            make_directory(Path(path))
        else:
            self._files.create_dir(path, recursive=True)

    def forget_before(self, batch: int) -> None:
        """Remove the micro-batches before this one."""
        for info in self._files.get_file_info(pa_fs.FileSelector(self._root, allow_not_found=True)):
            if info.base_name.isdecimal() and int(info.base_name) < batch:
                self._files.delete_dir(info.path)


def _file_system(directory: str) -> tuple[Any, str]:
    if "://" not in directory:
        return pa_fs.LocalFileSystem(), str(Path(directory.removeprefix("file:")).absolute())
    # Hadoop's names for the same.
    scheme, _, rest = directory.partition("://")
    uri = f"{ {'s3a': 's3', 's3n': 's3'}.get(scheme, scheme) }://{rest}"
    try:
        file_system, root = pa_fs.FileSystem.from_uri(uri)
    except (pa.ArrowInvalid, OSError) as error:
        raise InvalidValueError(f"option 'staging' is {directory!r}, which Arrow cannot open: {error}") from None
    return file_system, root
