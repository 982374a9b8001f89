"""Offloaded ledgers: one Parquet file each, written, checked and read back (docs/offload.md, decision 015).

Used by the broker and by the maintenance jobs. In reading order: ``digest`` (what makes two copies the same),
``format`` (the file), ``object_store`` (directories and buckets), ``parquet_archive`` (what the store reads copies
through). pyarrow and obstore are imported when a copy is touched: a broker that offloads nothing needs neither.
"""
