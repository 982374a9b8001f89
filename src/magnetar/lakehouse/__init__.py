"""Sinks that commit tables: Parquet, Delta, Iceberg; exactly once by transaction id."""
