"""Data pipelines on Spark: ``format("pulsar")`` as source and sink, in pure Python, Arrow both ways.

In reading order:

* ``data_source``   what Spark calls: the data source, and its registration
* ``options``       what can be set, checked once
* ``option_guard``  options checked in the driver, where they are given
* ``source``        the way in: ``source.planning`` how far and in which tasks, ``source.reading`` entries to rows
* ``sink``          the way out: rows to entries, each stored once
* ``offset_json``   an offset as a checkpoint holds it
* ``offset_log``    the files of a checkpoint that hold offsets and the query's id
* ``repeatability`` whether a repeated task will have the same rows
* ``durable_files`` what files owe to a loss of power
* ``progress``      what a running query reports of its Pulsar sources
* ``session``       a local session with the settings that these need
* ``java``          the Java that it needs
* ``class_archive`` Java's classes ahead of their first use
* ``interpreter``   the Python processes that Spark starts, without what they need not do
* ``forks``         those processes as forks of one that has imported what they need
* ``worker_python`` the Python of Spark's workers, which must have what the driver has
* ``cluster``       a standalone cluster on this machine
* ``process``       how each of its processes is ended

``options``, ``source.planning``, ``offset_json``, ``offset_log`` and ``sink.sequence_ids`` need no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make ``format("pulsar")`` known to a session."""
    from magnetar.spark.data_source import register as register_source

    register_source(spark)
