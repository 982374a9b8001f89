"""Single faults put into the product by machine, to see whether the tests notice them (docs/decisions/024).

``python -m tools.mutants`` samples them, judges each by the tests that run its line and prints those that none notices.
"""
