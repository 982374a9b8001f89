"""Whether a query's schema fits a table's, and which columns to add; pure, on Arrow schemas.

The rules, the same for each kind of table: every column that the query has and the table has must have the same type;
a column that only the table has is null in the new rows; a column that only the query has is an error with
``schemaEvolution=none`` and a new, nullable column with ``add``. Names that differ only in upper and lower case are
one name to Spark and two to the table, so they are an error. No column of a table that is made here is non-null.
"""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.model.errors import IncompatibleSchemaError


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the form in which schemas are compared: no metadata, all nullable, text and binary with 32-bit offsets."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return one type for all types that a table stores alike."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def fit(table: pa.Schema, query: pa.Schema, *, add: bool, where: str) -> list[pa.Field]:
    """Return the columns to add to ``table`` (as `plain_schema` gives them) before it can take rows of ``query``.

    Raises IncompatibleSchemaError, which names the column, both types and the rule.
    """
    known = {field.name: field.type for field in plain_schema(table)}
    lowered = {name.lower(): name for name in known}
    added = []
    for field in plain_schema(query):
        kind = known.get(field.name)
        if kind is None:
            near = lowered.get(field.name.lower())
            if near is not None:
                raise IncompatibleSchemaError(
                    f"{where}: the query's column {field.name!r} is the table's {near!r} in other letters; rename it"
                )
            if not add:
                raise IncompatibleSchemaError(
                    f"{where}: the query has a column {field.name!r} ({field.type}) that the table does not have, "
                    "and option schemaEvolution is none; select the table's columns, or set schemaEvolution=add"
                )
            added.append(field)
        elif kind != field.type:
            raise IncompatibleSchemaError(
                f"{where}: column {field.name!r} is {kind} in the table and {field.type} in the query; a column's "
                f"type never changes, so cast it to {kind} or give it another name"
            )
    return added


def widened(table: pa.Schema, added: list[pa.Field]) -> pa.Schema:
    """Return the schema with the added columns at the end."""
    for field in added:
        table = table.append(field)
    return table


def aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows of an earlier schema to ``schema``: its columns in its order, null where there was none."""
    columns = [
        rows.column(field.name).cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
