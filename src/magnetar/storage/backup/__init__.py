"""A data directory as it was at one moment, copied to another place and brought back (decision 044).

Reading order: ``manifest`` (what a backup holds, and the proof that it is whole), ``file_copy`` (one file in slices),
``backup_writer`` (all files, the manifest last), ``running_backup`` (the moment of a running broker, and its backups
one at a time), ``restored_files`` (every checksum, then the copy), ``backup_directory`` (where a broker may write) and
``data_directories`` (backup and restore of a broker that is not running).
"""
