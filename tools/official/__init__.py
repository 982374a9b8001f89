"""`make official`: the official Python client's own test suite, run against a broker.

- `suite`      takes the tests out of a git directory and points them at other addresses
- `bootstrap`  what the suite's own scripts create through REST before they run it
- `runner`     each test in a process of its own, with a time limit
- `expectations` which of them cannot pass there, and why
- `page`         docs/official-suite.md of that list
- `our_client` the same suite on our client
- `__main__`   the command line

Nothing of the suite is kept: it is extracted into a temporary folder and removed with it.
"""
