"""Reading offloaded ledgers back: what the store's reader calls, from its threads.

A footer is read once per file and kept (a few thousand bytes; the last :data:`_FOOTERS_MAX`), then one row group per
call. Nothing is believed: a file whose metadata does not say what the log recorded is another file.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from magnetar.model.errors import PersistenceError
from magnetar.offload.object_store import ObjectStore, object_store_at
from magnetar.storage.ledgers.archive import ArchivedEntries, Offload

if TYPE_CHECKING:
    from types import ModuleType

    from magnetar.offload.format import LedgerFile, LedgerWriter

_FOOTERS_MAX: Final = 256


class ParquetArchive:
    """Implements :class:`magnetar.storage.ledgers.archive.Archive`. ``stores``: for tests, how an address becomes
    an object store."""

    def __init__(self, stores: Callable[[str], ObjectStore] = object_store_at) -> None:
        self._make = stores
        self._lock = threading.Lock()
        self._stores: dict[str, ObjectStore] = {}
        self._files: OrderedDict[str, LedgerFile] = OrderedDict()

    def store_at(self, url: str) -> ObjectStore:
        """The object store at that address, made once. Raises InvalidValueError, PersistenceError, OSError."""
        with self._lock:
            found = self._stores.get(url)
        if found is None:
            made = self._make(url)
            with self._lock:
                found = self._stores.setdefault(url, made)
        return found

    def piece(self, offload: Offload, ledger: int, entry: int) -> ArchivedEntries:
        """See :meth:`magnetar.storage.ledgers.archive.Archive.piece`."""
        first, data, counts, indexes = self.columns(offload, ledger, entry)
        plain = bool((counts == 1).all())
        return ArchivedEntries(first, data.to_pylist(), None if plain else counts.tolist(), int(indexes[0]))

    def columns(self, offload: Offload, ledger: int, entry: int) -> tuple[int, Any, Any, Any]:
        """The row group that holds an entry: its first entry's number, entries (pyarrow binary array), message counts
        (numpy i32) and message indexes (numpy i64). Raises as :meth:`piece`."""
        form, store = _format(), self.store_at(offload.url)
        with closing(store.open(offload.name)) as source:
            file = self._file(form, offload, ledger, source)
            number, first = file.group_of(entry)
            try:
                data, counts = file.group(source, number)
            except BaseException:
                # the object may have been mended and written anew: its footer is to be read again
                self._forget(offload)
                raise
        return first, data, counts, file.index_of(number) + counts.cumsum(dtype="int64") - counts

    def writer(self, target: Any, topic: str, ledger: int, first_index: int) -> LedgerWriter:
        """What writes a copy: a path, or a file that is open for writing."""
        writer: LedgerWriter = _format().LedgerWriter(target, topic, ledger, first_index)
        return writer

    def check(self, offload: Offload, ledger: int) -> int:
        """Read the whole object and compare it with what is known; its size. Raises PersistenceError, OSError."""
        form, store = _format(), self.store_at(offload.url)
        with closing(store.open(offload.name)) as source:
            file = form.LedgerFile(form.footer(source, offload.key), offload.key)
            _require(file, offload, ledger)
            form.check(file, source)
            source.seek(0, 2)
            return int(source.tell())

    def size(self, offload: Offload) -> int:
        """The size of the object. Raises OSError, FileNotFoundError if there is none."""
        with closing(self.store_at(offload.url).open(offload.name)) as source:
            source.seek(0, 2)
            return int(source.tell())

    def _file(self, form: ModuleType, offload: Offload, ledger: int, source: object) -> LedgerFile:
        with self._lock:
            file = self._files.get(offload.key)
        if file is None:
            file = form.LedgerFile(form.footer(source, offload.key), offload.key)
            _require(file, offload, ledger)
            with self._lock:
                self._files[offload.key] = file
                while len(self._files) > _FOOTERS_MAX:
                    self._files.popitem(last=False)
        return file

    def delete(self, offload: Offload) -> None:
        """Delete an object that no ledger needs; fine if there is none. Raises OSError."""
        self.store_at(offload.url).delete(offload.name)
        self._forget(offload)

    def _forget(self, offload: Offload) -> None:
        with self._lock:
            self._files.pop(offload.key, None)


def _require(file: LedgerFile, offload: Offload, ledger: int) -> None:
    facts = file.facts
    found = (facts.ledger, facts.entries, facts.bytes, facts.digest)
    if found != (ledger, offload.entries, offload.bytes, offload.digest):
        raise PersistenceError(
            f"{offload.key} is not the copy of ledger {ledger} that was recorded: it says ledger {facts.ledger}, "
            f"{facts.entries} entries of {facts.bytes} bytes, digest {facts.digest}"
        )


def _format() -> ModuleType:
    """Import the format, which needs pyarrow, when a copy is first touched."""
    try:
        from magnetar.offload import format as form
    except ImportError as error:
        raise PersistenceError(f"offloaded ledgers need pyarrow ({error}): pip install 'magnetar[spark]'") from error
    return form
