"""The checkpoint directory of one pipeline.

    metadata, offsets/, commits/, state/   Spark's own: query id, the end of each micro-batch before it runs, and so on
    pipeline.json                          whose directory this is, and where each source began
    manifests/<batch>.json                 what was done (`manifest`)
    staged/<batch>/                        results of the micro-batch that is under way
    replays/<number>.json                  what ``magnetar pipeline replay`` has put back (`redrive`)
    lock                                   held by the process that runs or replays

Files of ours are written beside their place, synchronised and renamed, so each is there whole or not at all. The start
of micro-batch 0 is not in Spark's log (it asks the source again), hence pipeline.json.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import ConflictError, InvalidValueError
from magnetar.pipelines.state.manifest import FIRST, Manifest, ManifestError, from_text, to_text
from magnetar.spark.durable_files import sync, write_whole
from magnetar.spark.offset_json import from_json, own_offset
from magnetar.spark.offset_log import parse_offset_log, parse_query_id

Places = dict[str, ReadPosition]
STAGED: Final = "staged.json"
"""The file whose presence says that the results of a micro-batch are stored."""
_TAKEN: Final = ("metadata", "offsets", "commits", "state", "sources", "manifests", "staged", "replays")


class PipelineCheckpoint:
    """A pipeline's checkpoint, read anew at each call: several processes may read it, one may run."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)
        self._read: dict[int, Manifest] = {}

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the directory: no other process runs or replays meanwhile. ConflictError if one does."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConflictError(
                    f"{self.directory} is in use: another process runs or replays this pipeline; wait for it or stop it"
                ) from None
            # The system releases it when this process ends, in whatever way.
            yield

    # Spark's part

    def query_id(self) -> str | None:
        """Return the query's id; None before the first start."""
        try:
            return parse_query_id(text_of(self.directory / "metadata"), f"{self.directory}/metadata")
        except FileNotFoundError:
            return None

    def batches(self) -> list[int]:
        """Return the micro-batches that Spark has begun and perhaps not finished. Spark keeps the last hundred."""
        return _numbers(self.directory / "offsets", "")

    def commits(self) -> list[int]:
        """Return the micro-batches that Spark has finished, of the last hundred."""
        return _numbers(self.directory / "commits", "")

    def committed(self) -> int:
        """Return the last micro-batch that Spark has finished; -1 if there is none."""
        return max(self.commits(), default=-1)

    def hold(self, batch: int) -> None:
        """Sync what Spark has written of a micro-batch but does not sync itself: its range, and the query."""
        for path in (self.directory / "metadata", self.directory / "offsets" / str(batch)):
            sync(path)
            sync(path.parent)

    def ends(self, batch: int) -> list[Places | None]:
        """Return the end of each source, in Spark's order; None for one that has nothing yet. InvalidValueError for
        other files."""
        path = self.directory / "offsets" / str(batch)
        try:
            lines = parse_offset_log(text_of(path), str(path))
        except FileNotFoundError:
            raise InvalidValueError(f"{path} is gone: Spark's part of the checkpoint was changed") from None
        try:
            return [None if line is None else from_json(own_offset(line) or {}) for line in lines]
        except InvalidValueError as error:
            raise InvalidValueError(f"{path}: {error}") from None

    # ours

    def remains(self) -> list[str]:
        """Return which names of a checkpoint are taken in the directory, without those that any command makes."""
        return [name for name in _TAKEN if (self.directory / name).exists()]

    def identity(self) -> dict[str, Any] | None:
        """Read pipeline.json; None before the first start. InvalidValueError if it is not as it was written."""
        path = self.directory / "pipeline.json"
        try:
            found = json.loads(text_of(path))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise _damaged(path, str(error)) from None
        if not isinstance(found, dict) or not isinstance(found.get("pipeline"), str):
            raise _damaged(path, "it names no pipeline")
        _starts_of(found, path)
        return found

    def begin(self, pipeline: str, starts: Mapping[str, Places]) -> None:
        """Write pipeline.json."""
        places = {name: {topic: str(place) for topic, place in one.items()} for name, one in starts.items()}
        text = json.dumps({"v": 1, "pipeline": pipeline, "start": places}, indent=1)
        write_whole(self.directory / "pipeline.json", text + "\n")

    def starts(self) -> dict[str, Places]:
        """Return where each source began."""
        given = self.identity()
        if given is None:
            raise InvalidValueError(f"{self.directory} is no checkpoint of a pipeline: pipeline.json is missing")
        return _starts_of(given, self.directory / "pipeline.json")

    def sources(self) -> list[str]:
        """Return the names of the sources, sorted: those of the last manifest, since earlier releases let a pipeline go
        on with other names than it began with."""
        numbers = self.manifest_numbers()
        last = self.manifest(numbers[-1]) if numbers else None
        return sorted(self.starts() if last is None else last.sources)

    def manifest(self, batch: int) -> Manifest | None:
        """Return the manifest of a micro-batch, if there is one."""
        found = self._read.get(batch)
        if found is None:
            path = self._manifest(batch)
            try:
                found = from_text(text_of(path), str(path))
            except FileNotFoundError:
                return None
            except ManifestError:
                raise
            except InvalidValueError as error:
                raise ManifestError(str(error)) from None
            if found.batch != batch:
                raise ManifestError(f"{path} is the manifest of micro-batch {found.batch}: it was renamed or copied")
            self._read[batch] = found
        return found

    def manifests(self) -> tuple[list[Manifest], list[str]]:
        """Return all manifests in order, and what is wrong with files that cannot be read."""
        found, wrong = [], []
        for batch in self.manifest_numbers():
            try:
                one = self.manifest(batch)
            except ManifestError as error:
                wrong.append(str(error))
            else:
                if one is not None:
                    found.append(one)
        return found, wrong

    def manifest_numbers(self) -> list[int]:
        """Return the micro-batches that have a manifest, in order."""
        return _numbers(self.directory / "manifests", ".json")

    def write(self, manifest: Manifest) -> Manifest:
        """Seal a manifest with the fingerprint of the previous one and write it; return it as it was written."""
        before = self.manifest(manifest.batch - 1) if manifest.batch else None
        if manifest.batch and before is None:
            raise InvalidValueError(f"{self._manifest(manifest.batch - 1)} is missing: it was removed")
        assert manifest.previous in ("", FIRST if before is None else before.fingerprint), "sealed here only"
        whole = Manifest(
            manifest.pipeline,
            manifest.query,
            manifest.batch,
            manifest.sources,
            manifest.checks,
            manifest.outputs,
            manifest.times,
            FIRST if before is None else before.fingerprint,
        ).sealed()
        write_whole(self._manifest(whole.batch), to_text(whole))
        self._read = {whole.batch: whole}
        return whole

    def under_way(self, last: int) -> set[int]:
        """Return micro-batches after ``last`` that have a manifest, or whose results are stored and may be being
        written."""
        # In this order: results are removed when the manifest is there.
        waiting = {int(one.parent.name) for one in self.directory.glob(f"staged/*/{STAGED}")}
        return {batch for batch in waiting.union(self.manifest_numbers()) if batch > last}

    def staged(self, batch: int) -> Path:
        """Return the directory for a micro-batch's results."""
        return self.directory / "staged" / str(batch)

    def staged_results(self, batch: int) -> dict[str, Any]:
        """Return what ``staged.json`` says: ``outputs``, and by source ``rows`` and ``prints``.

        Raises InvalidValueError if it is damaged: results that may have been sent already are not computed again.
        """
        path = self.staged(batch) / STAGED
        try:
            found = json.loads(text_of(path))
        except (ValueError, RecursionError) as error:
            raise _damaged(path, str(error)) from None
        if not isinstance(found, dict) or not isinstance(found.get("outputs"), dict | list):
            raise _damaged(path, "it says nothing of outputs")
        if not all(isinstance(found.get(part), dict) for part in ("rows", "prints")):
            raise _damaged(path, "it says nothing of sources")
        return found

    def remove_staged(self) -> None:
        """Remove the results of all micro-batches."""
        shutil.rmtree(self.directory / "staged", ignore_errors=True)

    def _manifest(self, batch: int) -> Path:
        return self.directory / "manifests" / f"{batch}.json"


def text_of(path: Path) -> str:
    """Return the text of a file of a checkpoint. FileNotFoundError; InvalidValueError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, why: str) -> InvalidValueError:
    return InvalidValueError(
        f"{path} is damaged: {why}. Restore the checkpoint from a backup; without one, begin with an empty directory"
    )


def _starts_of(identity: dict[str, Any], path: Path) -> dict[str, Places]:
    try:
        return {
            name: {topic: ReadPosition.parse(text) for topic, text in places.items()}
            for name, places in identity["start"].items()
        }
    except (AttributeError, KeyError, TypeError, InvalidValueError) as error:
        raise _damaged(path, f"it does not say where sources began ({type(error).__name__}: {error})") from None


def _numbers(directory: Path, suffix: str) -> list[int]:
    if not directory.is_dir():
        return []
    names = (path.name for path in directory.iterdir() if path.name.endswith(suffix))
    return sorted(int(name) for one in names if (name := one.removesuffix(suffix)).isdecimal())
