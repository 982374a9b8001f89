"""``outputMode("update")`` into a topic: of each micro-batch the rows that have changed, appended.

Spark gives that mode to sinks only that have an interface of Java's, as Kafka's has, and none to Python's. So `gate`
starts such a query with ``foreachBatch``, and this writes each micro-batch. Its rows are those of a step that keeps
state (an aggregation, `dropDuplicates`), so they come through a shuffle, and effectively once is the way of `staging`:
stored first, sent from the files, numbered by the query's id and the micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.option_list import OPTIONS
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.sink.foreach_batch import query_of, staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OF_STREAMS: Final = frozenset({"staging", "repeatable", "delivery"})


def updates(given: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Return what to give to ``foreachBatch`` for a sink with these options. Raises InvalidValueError."""
    options = sink_options(given)
    plain = {
        key: value
        for key, value in given.items()
        if (option := OPTIONS.get(key.lower())) is not None and option.sink and key.lower() not in _OF_STREAMS
    }
    if options.staging is not None:
        return staged(options.staging, plain)
    if options.once is False:
        plain["delivery"] = "at-least-once"
    elif not options.repeatable:
        raise InvalidValueError(
            "outputMode('update') gives the rows of a step that keeps state, which come through a shuffle and may come "
            "otherwise when a micro-batch is repeated. Set the option staging=<directory>, which stores each "
            "micro-batch before it is sent; or delivery=at-least-once; or, if rows and order are always the same, "
            "repeatable=true. Without such a step outputMode('append') gives the same rows"
        )

    def send(result: DataFrame, batch_id: int) -> None:
        identity = {} if options.once is False else {"txnAppId": query_of(result), "txnVersion": str(batch_id)}
        result.write.format("pulsar").options(**plain, **identity).mode("append").save()

    return send
