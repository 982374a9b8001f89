"""The compiled build: what of the broker mypyc compiles, into a directory of its own (docs/decisions/058).

Reading order: ``library`` (source to shared libraries), ``twin`` (a copy of the product with them), ``hatch_build``
(wheels with them). ``python -m tools.compiled`` makes the twin in ``build/compiled``.
"""
