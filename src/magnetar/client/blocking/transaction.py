"""A transaction of the blocking client."""

from __future__ import annotations

from types import TracebackType

from magnetar.client.aio.client_transaction import ClientTransaction as AioTransaction
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.errors import ArgumentError
from magnetar.protocol.commands import TxnId


class ClientTransaction:
    """A transaction; make it with `Client.new_transaction`, and use it as a context manager, which commits it, or
    aborts it if an exception leaves the block."""

    def __init__(self, thread: LoopThread, twin: AioTransaction) -> None:
        self.twin = twin
        """Its asyncio twin, which lives on the loop thread."""
        self._thread = thread

    @property
    def txn_id(self) -> TxnId:
        """The transaction's id, as the coordinator gave it."""
        return self.twin.txn_id

    def __enter__(self) -> ClientTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.run(self.twin.__aexit__(kind, error, trace))

    def commit(self) -> None:
        """Wait for all its messages and acknowledgements, then make them count.

        Raises the first error of one of them, after the transaction was aborted; RefusedError of the coordinator.
        """
        self._thread.run(self.twin.commit())

    def abort(self) -> None:
        """Make nothing of it count."""
        self._thread.run(self.twin.abort())


def twin_of(txn: ClientTransaction | None) -> AioTransaction | None:
    """Return what the loop knows a transaction as. Raises ArgumentError."""
    if txn is None:
        return None
    if not isinstance(txn, ClientTransaction):
        raise ArgumentError(f"txn: a transaction of Client.new_transaction is expected, and not {type(txn).__name__}")
    return txn.twin
