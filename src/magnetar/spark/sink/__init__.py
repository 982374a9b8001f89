"""The sink: writes rows as entries, each stored once if the query wants that.

In reading order:

* ``value_writer``  columns to typed values
* ``pair_writer``   columns to key/value pairs
* ``sequence_ids``  how rows are numbered, and where a repeated task goes on; pure
* ``task_sink``     what a Spark task does to write
* ``writers``       the two writers that Spark calls
* ``staging_area``  micro-batches stored as files before they are sent
* ``foreach_batch`` the same for ``foreachBatch``
* ``update_mode``   the output mode update
"""
