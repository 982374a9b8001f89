"""``magnetar produce``, ``consume`` and ``read``: messages on the command line, with the flags of ``pulsar-client``.

Each command is a package with a module ``command``: ``produce``, ``consume``, ``read``. They share ``flags`` (how the
connection is named), ``session`` (one client, errors, exit codes), ``interrupts`` (Ctrl-C), ``cadence`` (rates),
``printed_message`` (what scripts read), ``written_value`` (values by schema), ``receiver`` (what is done with messages
that come), ``payload_schema`` (schemas and values of messages that are sent), ``avro_value`` (JSON to Avro) and
``encryption_flags`` (keys).
"""
