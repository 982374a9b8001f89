"""Who a peer is: its credentials checked by the provider of its method, on both interfaces (decision 030).

Reading order: ``provider`` (credentials and who judges them), ``service`` (all providers of a broker, and the
anonymous role), ``original_principal`` (whom a proxy may speak for), ``token_provider``, ``openid_provider``,
``tls_provider`` (with
``certificate_fingerprint``) and ``basic_provider`` (with its ``password_file``),

``revocation_list`` (what was taken back), ``watched_file``, ``configured_providers`` (from the settings to a
service), ``peer_certificate`` (what TLS has verified).
"""
