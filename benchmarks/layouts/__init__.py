"""What docs/decisions/002-storage-layout.md rests on: disk primitives and three layouts, measured.

Throw-away in spirit, kept so that the figures can be taken again on another disk. Nothing of the product imports it.
"""
