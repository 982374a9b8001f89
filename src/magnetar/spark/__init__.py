"""Data pipelines on Spark: ``format("pulsar")`` as source and sink, in pure Python, Arrow both ways.

May import client, protocol, runtime, model and pyspark. In reading order:

* `options`  what can be set, checked once, with the look-ups of `option_table`
* `offsets`  as users write them, and as a checkpoint keeps them
* `topics`   which are read
* `admission` how far the next micro-batch goes; pure
* `pace`     how many messages take as long as is wanted; pure
* `frontier` what the driver knows of the topics of a query
* `planner`  from two offsets to tasks; pure
* `slices`   where ranges are cut into tasks of a size
* `decode`   entries to Arrow
* `encode`   Arrow to rows for topics and partitions
* `sequences` how rows are numbered, and what a task goes on from
* `reader`   what a task does to read; batch mode
* `stream`   streaming mode
* `value_writer` columns to typed values, and `pair_writer` to pairs of them
* `publish`  what a task does to write
* `writer`   the sink
* `straight` whether a repeated task will have the same rows, and `stage`, if not: micro-batches as files
* `staging`  the same with foreachBatch; `durability`, what both owe to a loss of power
* `updates`  the output mode update
* `source`   what Spark is told; `register`
* `gate`     options refused where they are given; `workers`, the Python that Spark starts
* `session`  a local session with the settings that these need, `java`, which it needs, and `interpreter`, its Python
* `cluster`  a standalone cluster on this machine; `process`: how each process is ended
* `demo`     all of it on 336,776 flights, with the helpers of `flights`

`options`, `offsets`, `admission`, `planner`, `decode`, `encode` and `sequences` need no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make ``format("pulsar")`` known to a session."""
    from magnetar.spark.data_source import register as register_source

    register_source(spark)
