"""Records, dataclasses and models that tests of schemas have in common."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar
from uuid import UUID

from pydantic import BaseModel

from magnetar import schema


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def declared(of: Any, *, in_order: bool = False) -> Any:
    """Return a record's class of either client with everything that the official one can declare."""

    class Inner(of.Record):  # type: ignore[misc]  # of either
        x = of.Long()
        y = of.String(default="why", required_default=True)

    class Everything(of.Record):  # type: ignore[misc]  # of either
        _avro_namespace = "shop"
        _sorted_fields = in_order
        text = of.String(required=True)
        number = of.Integer(default=5, required_default=True)
        real = of.Double()
        small = of.Float(required=True)
        inner = Inner()
        again = Inner(required=True)
        flag = of.Boolean(required_default=True)
        colour = Colour
        texts = of.Array(of.String())
        inners = of.Array(Inner(), required=True)
        lists = of.Array(of.Array(of.Long()))
        counts = of.Map(of.Integer())
        of_inner = of.Map(Inner())
        raw = of.Bytes(required=True)

    return Everything


@dataclass
class Item:
    _sorted_fields: ClassVar[bool] = True
    count: schema.Int32
    sku: str | None = None


@dataclass
class Shirt:
    _avro_namespace: ClassVar[str] = "Golden"
    _sorted_fields: ClassVar[bool] = True
    done: bool
    number: int
    name: str | None = None
    price: float | None = None
    colour: Colour | None = None
    item: Item | None = None
    tags: dict[str, str] | None = None


class Model(BaseModel):
    at: dt.datetime
    day: dt.date
    time: dt.time
    price: Annotated[Decimal, schema.DecimalOf(9, 2)]
    id: UUID
    either: int | str = 4
    maybe: str | None
    tags: list[str] = []
    colour: Colour = Colour.BLUE
    small: schema.Float32 = 1.5
