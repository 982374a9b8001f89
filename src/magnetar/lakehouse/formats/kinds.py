"""Opens a table of any kind, importing only that kind's library."""

from __future__ import annotations

from magnetar.lakehouse.formats.table import Table
from magnetar.lakehouse.model.options import LakeOptions, TableKind
from magnetar.model.errors import InvalidValueError
from magnetar.security.credentials.bucket_login import leave_machine_out, require_bucket_login


def open_table(options: LakeOptions) -> Table:
    """Open a table. Raises InvalidValueError with what to install if the library of its kind is missing."""
    leave_machine_out(options.path, options.storage)
    try:
        match options.kind:
            case TableKind.PARQUET:
                from magnetar.lakehouse.formats.parquet_table import ParquetTable

                return ParquetTable(options)
            case TableKind.DELTA:
                require_bucket_login(options.path, options.storage)  # its library opens the address itself
                from magnetar.lakehouse.formats.delta_table import LakeDelta

                return LakeDelta(options)
            case TableKind.ICEBERG:
                from magnetar.lakehouse.formats.iceberg_table import LakeIceberg

                return LakeIceberg(options)
    except ImportError as error:
        raise InvalidValueError(
            f"magnetar-{options.kind.value} needs {error.name}, which is not installed; "
            "pip install 'magnetar[pipelines]'"
        ) from None
