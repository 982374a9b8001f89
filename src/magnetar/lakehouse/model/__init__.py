"""What a table of any kind is; pure, nothing here touches a file.

In reading order:

* ``partition``     rows to partitions
* ``options``       what can be set, checked once
* ``table_schema``  does a query's schema fit a table's
* ``history``       commits, and from versions to topic positions and back
* ``lineage``       which files hold which micro-batches
* ``data_file``     what a task says of a file it wrote
* ``layout``        how the files of a transaction are to be
* ``file_bins``     which small files are put together
* ``library_reason``  why a library could not do something
"""
