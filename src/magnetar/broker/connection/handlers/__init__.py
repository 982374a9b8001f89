"""The handlers of the commands, after the groups of the binary protocol.

Reading order: ``command_table`` says which handler answers which command, with ``guarded_commands`` those that ask for
permission first. ``handshake`` answers CONNECT and says who
the client is; ``lookup_commands`` are the questions about topics; ``producer_commands`` and ``send_command`` publish;
``subscribe_command`` and ``consumer_commands`` consume; ``transaction_commands``, ``schema_commands`` and
``topic_list_watch`` serve those features, ``topic_list_answer`` sends lists that may be long, and ``metadata_write``
begins what may wait for the metadata store.
"""
