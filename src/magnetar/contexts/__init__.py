"""From a command line to one connection: flags, the environment, saved connections and Pulsar's ``client.conf``.

It has no commands and asks no broker, so that all commands can use it (decision 039). In reading order:

* ``context``            one saved connection, checked
* ``context_file``       contexts.toml, which holds all of them: how it is read and replaced
* ``conf_import``        a context from Pulsar's ``client.conf``
* ``broker_connection``  what a command says about its connection, and the connection that follows from it
* ``flags``              the flags by which commands say it, declared once for all of them
"""
