"""Transactions: the coordinator's commands and those it sends to brokers (rules of group 9)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from magnetar.model.errors import ServerError
from magnetar.protocol.commands.ids import TxnId


class TxnAction(IntEnum):
    COMMIT = 0
    ABORT = 1


class TxnSubscription(NamedTuple):
    topic: str
    subscription: str


@dataclass(frozen=True, slots=True)
class CommandTcClientConnectRequest:
    request_id: int
    tc_id: int


@dataclass(frozen=True, slots=True)
class CommandTcClientConnectResponse:
    request_id: int
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandNewTxn:
    request_id: int
    txn_ttl_seconds: int = 0
    tc_id: int = 0


@dataclass(frozen=True, slots=True)
class CommandNewTxnResponse:
    request_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandAddPartitionToTxn:
    request_id: int
    txn: TxnId
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandAddPartitionToTxnResponse:
    request_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandAddSubscriptionToTxn:
    request_id: int
    txn: TxnId
    subscriptions: tuple[TxnSubscription, ...]


@dataclass(frozen=True, slots=True)
class CommandAddSubscriptionToTxnResponse:
    request_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandEndTxn:
    request_id: int
    txn: TxnId
    action: TxnAction | None = None


@dataclass(frozen=True, slots=True)
class CommandEndTxnResponse:
    request_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandEndTxnOnPartition:
    request_id: int
    txn: TxnId
    topic: str | None = None
    action: TxnAction | None = None
    low_watermark: int | None = None


@dataclass(frozen=True, slots=True)
class CommandEndTxnOnPartitionResponse:
    request_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CommandEndTxnOnSubscription:
    request_id: int
    txn: TxnId
    subscription: TxnSubscription | None = None
    action: TxnAction | None = None
    low_watermark: int | None = None


@dataclass(frozen=True, slots=True)
class CommandEndTxnOnSubscriptionResponse:
    request_id: int
    txn: TxnId | None = None
    error: ServerError | None = None
    message: str | None = None
