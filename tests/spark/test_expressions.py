"""What a pipeline makes of rows as JSON has all of them, to the microsecond."""

from __future__ import annotations

import json
from typing import Any

from magnetar.pipelines.declaration.model import TopicSink
from magnetar.pipelines.execution import expressions

MOMENTS = "SELECT timestamp'1969-12-31 23:59:59.{}' AS at, timestamp_ntz'1969-12-31 23:59:59.{}' AS there"


def test_microseconds_are_written_and_have_a_print(spark: Any) -> None:
    """to_json alone cuts them off, so a topic lost them, and a table in which they were changed was proven."""
    rows = spark.sql(f"{MOMENTS.format('000001', '123456')} UNION ALL {MOMENTS.format('000002', '123456')}")
    sink = TopicSink("out", "", "step", "t", {}, {})
    assert [json.loads(row.value) for row in expressions.sink_rows(rows, sink).collect()] == [
        {"at": f"1969-12-31T23:59:59.00000{number}Z", "there": "1969-12-31T23:59:59.123456"} for number in (1, 2)
    ]
    prints = {row[0] for row in rows.select(expressions.row_print(rows.columns)).collect()}
    assert len(prints) == 2
