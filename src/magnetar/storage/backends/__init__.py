"""The only room of storage that touches the operating system: files, directories and the process that syncs.

Reading order: ``files`` (a few verbs on a file and on a directory), ``directory`` (made durable, private and locked),
``committer`` (how a group reaches the disk), ``sync_process`` (the committer that spares the loop every wait),
``segment_names`` (which file is which segment), ``newest_segment`` (notices that the newest is gone) and
``lost_segment`` (gives an open file that was removed a name again).
"""
