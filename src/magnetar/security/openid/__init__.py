"""OpenID Connect: the public keys of the issuers whose tokens count.

Reading order: ``key_sets`` (what an issuer publishes, as keys that verify), ``issuer_keys`` (fetched, remembered and
fetched again).
"""
