"""``magnetar admin``: the commands of Apache Pulsar's ``pulsar-admin``, kept as tables.

Read ``table`` (rows of commands, in the folder tables), ``values`` and ``arguments`` (command lines as picocli reads
them), ``request`` (from a row to a request), ``call`` (one call of a command), ``command`` (from words to exit codes),
``help_page``, ``error_report``, ``failures``, and last ``functions``: ``policy_commands``,
``namespace_commands``, ``topic_commands``, ``message_commands`` and ``flat_yaml`` carry out what is more than one
request.
"""
