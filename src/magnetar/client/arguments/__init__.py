"""What calls take: one description for each kind of argument, and the error that names what does not fit it.

* ``expected_argument``  what a parameter takes, in words and as a test
* ``kinds``              the expectations that many parameters share: numbers, texts, mappings, functions
"""
