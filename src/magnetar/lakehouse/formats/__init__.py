"""The kinds of table: one interface, and its three forms.

In reading order:

* ``table``          what every kind of table can do
* ``parquet_log``    the commit log of a directory of Parquet files
* ``parquet_table``  a directory of Parquet files with that log
* ``delta_table``    Delta by delta-rs
* ``delta_merge``    rows into a Delta table by key
* ``iceberg_files``  data files of an Iceberg table
* ``iceberg_table``  Iceberg by pyiceberg
* ``kinds``          from options to a table
"""
