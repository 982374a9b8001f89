"""Small facts that must agree: tenants, namespaces with their policies, partition counts.

May import model and runtime. Reading order: store (the seam), memory (a maker for tests; the durable one is
magnetar.storage.metadata_log.metadata_log), sqlite (what older versions left), collection (records held in memory,
written through), clusters, tenants, namespaces, partitioned, resources (all of them together). Ledgers and cursors are
not here: the storage log keeps its own.
"""
