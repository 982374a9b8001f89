"""What threads look at instead of reading messages: a table view over its asyncio twin.

Looks are at the table itself, without a way to the loop thread. Listeners run on a thread of their own, one for each,
so they may take their time and call the client.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from typing_extensions import override

from magnetar.client.aio.parameters import checked
from magnetar.client.aio.views.table_view import Action
from magnetar.client.aio.views.table_view import TableView as AioTableView
from magnetar.client.blocking.loop_thread import LoopThread

_LOG: Final = logging.getLogger(__name__)


class _Changes(queue.SimpleQueue[tuple[str, Any] | None]):
    """Changes on their way to a listener; None after the last."""

    def put_change(self, key: str, value: Any) -> None:
        self.put((key, value))


class TableView(Mapping[str, Any]):
    """A view; make it with `Client.create_table_view`, and use it as a context manager."""

    def __init__(self, thread: LoopThread, twin: AioTableView) -> None:
        self.twin = twin
        """Its asyncio twin, which lives on the loop thread."""
        self._thread = thread
        thread.closes_with(self, twin)
        self._changes: list[_Changes] = []
        twin.at_close.append(partial(_end, self._changes))

    def __enter__(self) -> TableView:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def topic(self) -> str:
        """Return the topic, without a partition."""
        return self.twin.topic()

    def is_connected(self) -> bool:
        """Whether all partitions are read at the moment."""
        self._thread.check_process()
        return self._thread.refusal is None and self.twin.is_connected()

    @override
    def __getitem__(self, key: str) -> Any:
        self._thread.check()
        return self.twin[key]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    @override
    def __len__(self) -> int:
        self._thread.check()
        return len(self.twin)

    def __hash__(self) -> int:
        return id(self)

    @override
    def __eq__(self, other: object) -> bool:
        return self is other

    def snapshot(self) -> dict[str, Any]:
        """Return a copy, which does not change any more."""
        self._thread.check()
        return self.twin.snapshot()

    def for_each(self, callback: Action) -> None:
        """Call a function with each key and its value; what it raises is raised here."""
        checked("for_each", callback=callback)
        for key, value in self.snapshot().items():
            callback(key, value)

    def listen(self, callback: Action) -> None:
        """Call a function with each change from now on, on a thread of its own; what it raises is logged."""
        checked("listen", callback=callback)
        self._start(self._heard()[1], callback)

    def for_each_and_listen(self, callback: Action) -> None:
        """Call a function with each key and its value, then with each change; none is left out in between."""
        checked("for_each_and_listen", callback=callback)
        now, changes = self._heard()
        try:
            for key, value in now.items():
                callback(key, value)
        except BaseException:
            self._thread.post(lambda: self.twin.unlisten(changes.put_change))
            raise
        self._start(changes, callback)

    def _heard(self) -> tuple[dict[str, Any], _Changes]:
        changes = _Changes()

        async def listen() -> dict[str, Any]:
            self.twin.listen(changes.put_change)
            self._changes.append(changes)
            return self.twin.snapshot()

        return self._thread.run(listen()), changes

    def _start(self, changes: _Changes, callback: Action) -> None:
        def run() -> None:
            while (change := changes.get()) is not None:
                try:
                    callback(*change)
                except BaseException:
                    _LOG.exception("a listener of the table view of %s failed", self.topic())

        threading.Thread(target=run, name=f"listener of {self.topic()}", daemon=True).start()

    def refresh(self) -> None:
        """Wait until the view has everything that is stored by now. Raises ClientTimeoutError after the operation's
        time-out, and why the topic can be read no more."""
        self._thread.run(self.twin.refresh())

    def close(self) -> None:
        """Close; the broker forgets it, and listeners hear nothing more. Closing twice is no error (rule 6.1.7)."""
        self._thread.may_wait()
        try:
            self._thread.end(self.twin.close)
        finally:
            _end(self._changes)


def _end(listened: list[_Changes]) -> None:
    """End the threads of listeners after the changes that have come."""
    for changes in listened:
        changes.put(None)
    listened.clear()
