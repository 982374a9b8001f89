"""Small facts that must agree: tenants, namespaces with their policies, partition counts, schemas.

Reading order: ``store`` (the seam; the durable store is :mod:`magnetar.storage.metadata_log`), ``sqlite`` (what older
versions left), ``measured_store`` (a store whose writes are counted), ``collection`` (records held in memory, written
through), ``clusters``, ``tenants``, ``namespaces``, ``partitioned``, ``topic_policies``, ``resource_groups``,
``schemas``, ``placement`` (what is said about where things shall lie), ``dynamic_configuration`` (settings of running
brokers), ``resources`` (all of them together). Ledgers and cursors are not here: the storage log keeps its own.
"""
