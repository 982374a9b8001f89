"""Small facts that must agree: tenants, namespaces with their policies, partition counts, schemas.

May import model, config and runtime. Reading order: ``store`` (the seam), ``memory`` (a store for tests; the durable
one is :mod:`magnetar.storage.metadata_log`), ``sqlite`` (what older versions left), ``collection`` (records held in
memory, written through), ``clusters``, ``tenants``, ``namespaces``, ``partitioned``, ``topic_policies``, ``schemas``,
``resources`` (all of them together). Ledgers and cursors are not here: the storage log keeps its own.
"""
