"""``format("pulsar")``: the data source that Spark calls, and how it is registered.

    from magnetar.spark import register
    register(spark)
    spark.read.format("pulsar").option("service.url", "pulsar://localhost:6650").option("topic", "flights").load()

Without `register`, Spark finds the source by itself through the package ``pyspark_magnetar``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from magnetar.columnar.arrow_decoder import arrow_schema, chosen_columns, sql_schema
from magnetar.model.errors import InvalidValueError
from magnetar.spark.interpreter import settle
from magnetar.spark.option_guard import FormatChecks, guard
from magnetar.spark.options.sink_options import sink_options
from magnetar.spark.options.source_options import SourceOptions, check_batch, check_stream, source_options
from magnetar.spark.sink.update_mode import updates
from magnetar.spark.sink.writers import BatchWriter, StreamWriter, check_schema
from magnetar.spark.source.reading.batch_reader import BatchReader, FilteringBatchReader
from magnetar.spark.source.reading.stream_reader import StreamReader
from magnetar.spark.source.reading.value_schemas import column_texts, matching, resolved, value_decoder
from magnetar.spark.worker_python import settle_workers, use_forks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class PulsarSource(DataSource):
    """The data source: batch and streaming, source and sink.

    Spark makes one for every use; options are checked then.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return "pulsar"

    def schema(self) -> str:
        """Return the columns, which the options ``value`` and ``metadata`` fix."""
        options = resolved(source_options(self.options))
        settle("planner")
        return sql_schema(value_decoder(options).schema, chosen_columns(options.metadata))

    def reader(self, schema: StructType) -> BatchReader:
        """Return the reader of ``spark.read``."""
        check_batch(self.options)
        options = self._source(schema)
        settle("planner")
        kind = FilteringBatchReader if options.push_down else BatchReader
        return kind(options, arrow_schema(value_decoder(options).schema, chosen_columns(options.metadata)))

    def streamReader(self, schema: StructType) -> StreamReader:
        """Return the reader of ``spark.readStream``."""
        return StreamReader(self._source(schema))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Return the writer of ``df.write.mode("append")``."""
        options = sink_options(self.options)
        check_schema(options, schema, overwrite)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """Return the writer of ``df.writeStream``; ``overwrite`` is the output mode complete."""
        options = sink_options(self.options)
        check_schema(options, schema, overwrite)
        # Spark asks twice per micro-batch, in two processes.
        settle("planner")
        return StreamWriter(options)

    def _source(self, schema: StructType) -> SourceOptions:
        given = [f"{field.name} {field.dataType.simpleString()}" for field in schema.fields]
        options = matching(source_options(self.options), given)
        found = column_texts(options)
        if given != found:
            raise InvalidValueError(
                f"the columns are {', '.join(found)} and not {', '.join(given)}: leave out .schema(), choose with the "
                "options 'value' and 'metadata', and load again if the topic's schema has changed since"
            )
        return options


def register(spark: SparkSession) -> None:
    """Make ``format("pulsar")`` known to a session. InvalidValueError if its workers run a Python without it."""
    if is_here(spark):
        settle_workers(spark.sparkContext)
        use_forks(spark.sparkContext)
        guard(PulsarSource.name(), FormatChecks(_check_batch, _check_stream, sink_options, sink_options, updates))
    spark.dataSource.register(PulsarSource)


def is_here(spark: SparkSession) -> bool:
    """Return whether it is a session of this process, and not one of Spark Connect."""
    return type(spark).__module__ == "pyspark.sql.session"


def _check_batch(given: Mapping[str, str]) -> None:
    check_batch(given)
    source_options(given)


def _check_stream(given: Mapping[str, str]) -> None:
    check_stream(source_options(given))
