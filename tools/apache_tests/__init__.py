"""`make apache-tests`: Apache Pulsar's own tests of its broker run against magnetar.

Some 350 classes of Apache Pulsar's tests start a broker in their own process and try it with the Java client and the
Java admin client. Their published classes run unchanged here; what starts the broker is replaced by a process of
`magnetar standalone` with the test's configuration. A test that asks for the inside of the broker is left out.

- `class_path`   gets the published tests and what they need, compiles `java/`, and lists the classes
- `class_run`    runs one class in a process of its own, and reads its verdicts
- `__main__`     the command line

`java/` is what stands in the broker's place: `StandIn` changes the methods that make a broker and those that create
what a standalone broker has from its start, `BrokerProcess` is the process with its `Settings` and `KeyStores`,
`Credentials` what it takes in the place of a test's own provider, `ChangedSettings` what makes it follow a test.
`Answers` is what tests learn of it, with the topics in `MirroredBroker`, `MirroredTopic`, `MirroredSubscription` and
`MirroredSelector`, their policies in `MirroredPolicies` and who may do what in `MirroredAuthorization`; what is
`Inside` skips a test, but for `Permissions`. `Compaction` and `Metrics` ask the process where tests ask their own
broker, `OldNames` rewrites names of before Pulsar 2.0, `PrometheusMetricsClient` is a class that the published tests
lack, `Verdicts` prints one line for each test.

Java, Maven and Apache Pulsar's distribution are needed (`tools.servers.apache` gets it, as for `make oracle`); nothing
of them is kept in the repository.
"""
