"""The REST interface, on Pulsar's v2 paths.

Reading order: ``values`` (what bodies may hold, as plain functions from JSON to values), ``ports`` and
``broker_control`` (what the interface needs of the broker), ``later_modules`` (imported when they are needed),
``http`` (bodies, parameters, errors, origins and the server), ``routes`` (one module for each group of routes),
``websocket`` (sockets that speak JSON), ``local_broker`` (the ports, answered by the broker of this process),
``application`` (all of it put together). Routes know the broker by its ports only.
"""
