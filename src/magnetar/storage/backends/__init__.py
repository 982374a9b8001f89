"""The only package of storage that uses the operating system, and the interface through which storage uses it.

Reading order: ``journal_backend`` (what the log asks of a backend), ``files`` (a few verbs on a file and on a
directory), ``directory`` (made durable, private and locked), ``file_names`` (which file is which segment),
``zeros_ahead`` (which zeros are written after the log's end), ``committer`` (how a group reaches the disk),
``sync_process`` (the committer that spares the loop every wait),
``newest_segment`` (notices that the newest is gone), ``lost_segment`` (gives an open file that was removed a name
again), ``segment_writer`` (writes the newest segment), ``reserve`` (space kept back), ``sync_probe`` (how fast the
disk is) and ``local_journal`` (a journal's segments and checkpoints as files).
"""
