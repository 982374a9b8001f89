"""Transactions, pure: who is in one, which entries and acknowledgements belong to it, and how it ends (SEMANTICS 9)."""
