"""Spark's progress of a query is read as the progress of its Pulsar sources."""

from __future__ import annotations

import json

from magnetar.client.bulk.lag import Lag
from magnetar.client.read_position import ReadPosition
from magnetar.spark.offset_json import to_json
from magnetar.spark.progress import lag_json, progress_of

T, U = "persistent://public/default/t", "persistent://public/default/u"


def test_the_lag_is_that_of_all_partitions() -> None:
    end = to_json({T: ReadPosition(1, 5), U: ReadPosition(1, 1)})
    latest = to_json({T: ReadPosition(1, 9), U: ReadPosition(2, 1)})
    latest["lag"] = lag_json({T: Lag(40, 900), U: Lag(2, 400)}, 1_000)
    source = {
        "numInputRows": 7, "processedRowsPerSecond": 3.5, "endOffset": json.dumps(end),
        "latestOffset": json.dumps(latest),
    }  # fmt: skip
    progress = {
        "id": "i",
        "name": None,
        "batchId": 3,
        "sources": [source, {"endOffset": "7"}, {"endOffset": "no JSON"}],
    }
    (found,) = progress_of(progress)
    assert found[:5] == ("i", 3, (T, U), 7, 3.5)
    assert found[5:] == ((T, U), 42, 600)
    latest["lag"] = lag_json({T: Lag(None, None), U: Lag(2, 400)}, 1_000)
    (found,) = progress_of({**progress, "name": "n", "sources": [{**source, "latestOffset": latest}]})
    assert (found.query, found[5:]) == ("n", ((T, U), None, None))
    # A micro-batch that is repeated: Spark has not asked for the latest offset.
    (found,) = progress_of({**progress, "sources": [{**source, "latestOffset": None}]})
    assert found[5:] == ((), None, None)
    (found,) = progress_of({**progress, "sources": [{**source, "latestOffset": json.dumps(end)}]})
    assert found[5:] == ((), 0, 0)
