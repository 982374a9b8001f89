"""Tokens: JSON web tokens as Pulsar signs and reads them (rule 12.2).

Reading order: ``key_source`` (where the bytes of a key come from), ``keys`` (what they are, and which algorithms they
allow), ``claims`` (what a token has to say), ``validation`` (from a token to an
identity), ``signer`` (makes keys and tokens).
"""
