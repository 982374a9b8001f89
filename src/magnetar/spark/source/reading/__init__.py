"""Reading: ranges of entries become rows, through the two readers that Spark calls.

In reading order:

* ``range_entries`` the entries of a range as they can be decoded: chunks joined, encrypted ones opened
* ``value_schemas`` from options and registry to what decodes values
* ``read_task``     what a Spark task does to read
* ``batch_reader``  ``spark.read``
* ``stream_reader`` ``spark.readStream``
"""
