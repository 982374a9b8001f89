"""Data files of tables, local or in an object store.

In reading order:

* ``file_store``   the one way to files
* ``statistics``   of a Parquet file, in Delta's form
* ``file_writer``  what a task does with its rows
* ``file_reader``  single files, for those who verify
"""
