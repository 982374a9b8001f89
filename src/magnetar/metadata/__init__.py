"""Small facts that must agree: tenants, namespaces, partitioned topics, policies."""
