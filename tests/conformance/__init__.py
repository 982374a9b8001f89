"""`make oracle`: asks Apache Pulsar and magnetar the same questions and prints where the answers differ.

- `wire`         a raw connection: frames built and taken apart by hand, so that broken ones can be sent too
- `answers`      what a broker said, as JSON in which nothing depends on the run
- `rest`         the admin interface, seen from outside
- `probe`        one question: an id, the rule it tests, the settings it needs, a function
- `tokens`       who the questions about permissions come from, and the settings of a broker that asks for it
- `security_stage`  a tenant with roles and grants, for those questions
- `transaction_stage`  what the questions about transactions begin with
- `probes/`      the questions, by subject
- `brokers`      the brokers that are asked, one per set of settings
- `recording`    Apache Pulsar's answers as files in tests/conformance/recorded
- `differences`  the differences that are on purpose, docs/differences.md
- `__main__`     the command line
- `test_recorded`  what `make test` asks: magnetar against the recorded answers
"""
