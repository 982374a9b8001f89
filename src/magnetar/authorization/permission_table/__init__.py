"""The permission table: one row for each command of the wire and each route of HTTP, which says what it needs.

Read ``command_permissions`` (the wire) and ``route_permissions`` (HTTP; the rows of brokers, clusters and tenants stand
in ``cluster_permissions``), with ``needs`` (the kinds of rows), ``request_target`` (what a path names) and
``policy_words`` (which policy a word in a path is). ``matrix`` is the table as cases for tests.
"""
