"""Transactions over REST (rule 9.17). 503 on a broker that has none."""

from __future__ import annotations

from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.arguments import RequestParameter
from magnetar.admin.http.authorization import Permissions, caller_of
from magnetar.admin.http.bodies import answer, done, json_body
from magnetar.admin.http.parameters import Flag, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TransactionsPort
from magnetar.admin.values.coercion import number
from magnetar.authorization.access import ClusterAccess
from magnetar.model.errors import NotAcceptableError, NotAvailableError, NotFoundError, ServiceNotReadyError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.protocol.commands import TxnId

_BASE = "/admin/v3/transactions"
_TOPIC = "{tenant}/{namespace}/{topic}"
_TXN = "{mostSigBits}/{leastSigBits}"


def routes(transactions: TransactionsPort | None, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup(_BASE)
    _coordinator_routes(router, transactions, permissions)
    _topic_routes(router, transactions)
    return router


def _views(transactions: TransactionsPort | None) -> TransactionsPort:
    if transactions is None:
        raise ServiceNotReadyError("This Broker is not configured with transactionCoordinatorEnabled=true.")
    return transactions


def _name(tenant: str, namespace: str, topic: str) -> TopicName:
    return topic_name("persistent", tenant, namespace, topic)


def _require_owner(
    request: Request, transactions: TransactionsPort | None, permissions: Permissions, txn: TxnId
) -> None:
    """Raise unless the caller began the transaction or is a superuser; whether it exists is not said to others."""
    if permissions.counted:
        access = ClusterAccess("use transactions that others began")
        owner = None if transactions is None else transactions.owner(txn)
        if owner is not None and owner == caller_of(request).principal:
            permissions.record(request, access, f"{owner} began it")
        else:
            permissions.require(request, access, recorded=True)


def _coordinator_routes(router: RouteGroup, transactions: TransactionsPort | None, permissions: Permissions) -> None:
    @router.get("/coordinators")
    async def coordinators() -> Response:
        return answer(_views(transactions).coordinators())

    @router.get("/coordinatorStats")
    async def coordinator_stats(coordinatorId: int | None = None) -> Response:
        found = _views(transactions).coordinator_stats()
        if coordinatorId is None:
            return answer({"0": found})
        if coordinatorId != 0:
            raise NotFoundError(f"Transaction coordinator not found! coordinator id : {coordinatorId}")
        return answer(found)

    @router.get("/coordinatorInternalStats/{coordinatorId}")
    async def coordinator_internals(coordinatorId: int) -> Response:
        return answer(_views(transactions).coordinator_internals(coordinatorId))

    @router.post("/transactionCoordinator/replicas")
    async def scale(request: Request) -> Response:
        wanted = number(await json_body(request), "the number of transaction coordinators")
        have = len(_views(transactions).coordinators())
        if wanted <= have:
            raise NotAcceptableError(
                "Number of transaction coordinators should be more than the current number of transaction coordinator"
            )
        raise NotAvailableError(
            f"{wanted} transaction coordinators are not available yet in magnetar: one serves every transaction of the "
            "broker"
        )

    @router.get(f"/transactionMetadata/{_TXN}")
    async def transaction(mostSigBits: int, leastSigBits: int, request: Request) -> Response:
        txn = TxnId(mostSigBits, leastSigBits)
        _require_owner(request, transactions, permissions, txn)
        return answer(_views(transactions).transaction(txn))

    @router.get("/slowTransactions/{timeout}")
    async def slow(
        timeout_ms: Annotated[int, RequestParameter(name="timeout")], coordinatorId: int | None = None
    ) -> Response:
        views = _views(transactions)
        if coordinatorId not in (None, 0):
            raise NotFoundError(f"Transaction coordinator not found! coordinator id : {coordinatorId}")
        return answer(views.slow(timeout_ms))

    @router.post(f"/abortTransaction/{_TXN}")
    async def abort(mostSigBits: int, leastSigBits: int, request: Request) -> Response:
        txn = TxnId(mostSigBits, leastSigBits)
        _require_owner(request, transactions, permissions, txn)
        await _views(transactions).abort(txn)
        return done()


def _topic_routes(router: RouteGroup, transactions: TransactionsPort | None) -> None:
    @router.get(f"/transactionBufferStats/{_TOPIC}")
    async def buffer(tenant: PathText, namespace: PathText, topic: NameText, lowWaterMarks: Flag = False) -> Response:
        return answer(_views(transactions).buffer(_name(tenant, namespace, topic), low_water_marks=lowWaterMarks))

    @router.get(f"/transactionBufferInternalStats/{_TOPIC}")
    async def buffer_internals(tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        return answer(_views(transactions).buffer_internals(_name(tenant, namespace, topic)))

    @router.get(f"/pendingAckInternalStats/{_TOPIC}/{{subName}}")
    async def pending_ack_internals(
        tenant: PathText, namespace: PathText, topic: NameText, subName: PathText
    ) -> Response:
        return answer(_views(transactions).pending_ack_internals(_name(tenant, namespace, topic), subName))

    @router.get(f"/transactionInBufferStats/{_TOPIC}/{_TXN}")
    async def in_buffer(
        tenant: PathText, namespace: PathText, topic: NameText, mostSigBits: int, leastSigBits: int
    ) -> Response:
        return answer(_views(transactions).in_buffer(_name(tenant, namespace, topic), TxnId(mostSigBits, leastSigBits)))

    @router.get(f"/pendingAckStats/{_TOPIC}/{{subName}}")
    async def pending_acks(
        tenant: PathText, namespace: PathText, topic: NameText, subName: PathText, lowWaterMarks: Flag = False
    ) -> Response:
        name = _name(tenant, namespace, topic)
        return answer(_views(transactions).pending_acks(name, subName, low_water_marks=lowWaterMarks))

    @router.get(f"/transactionInPendingAckStats/{_TOPIC}/{{subName}}/{_TXN}")
    async def in_pending_acks(
        tenant: PathText, namespace: PathText, topic: NameText, subName: PathText, mostSigBits: int, leastSigBits: int
    ) -> Response:
        name = _name(tenant, namespace, topic)
        return answer(_views(transactions).in_pending_acks(name, subName, TxnId(mostSigBits, leastSigBits)))

    @router.get(f"/positionStatsInPendingAck/{_TOPIC}/{{subName}}/{{ledgerId}}/{{entryId}}")
    async def position(
        tenant: PathText, namespace: PathText, topic: NameText, subName: PathText, ledgerId: int, entryId: int,
        batchIndex: Annotated[int | None, RequestParameter(at_least=0, at_most=1 << 20)] = None,
    ) -> Response:  # fmt: skip
        name = _name(tenant, namespace, topic)
        return answer(_views(transactions).position(name, subName, Position(ledgerId, entryId), batchIndex))
