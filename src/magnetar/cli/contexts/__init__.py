"""Saved connections: contexts.toml in the user's configuration directory, and the commands that keep it.

Read ``context`` (one saved connection, checked), then ``context_file`` (where all of them stand, and how they are
written), ``conf_import`` (one from Pulsar's ``client.conf``) and ``command`` (``magnetar contexts``).
"""
