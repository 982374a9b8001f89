"""`make apache-tests`: which classes it runs, and what it reads from a run."""

from __future__ import annotations

import re
from pathlib import Path

import tools.apache_tests
from tools.apache_tests.__main__ import chosen
from tools.apache_tests.class_path import ARTIFACTS, SOURCES, digest, with_a_broker
from tools.apache_tests.class_run import Verdict, verdicts

LISTING = """Compiled from "MockedPulsarServiceBaseTest.java"
public abstract class org.apache.pulsar.broker.auth.MockedPulsarServiceBaseTest extends org.apache.TestRetrySupport {
}
public abstract class org.apache.pulsar.client.api.ProducerConsumerBase extends \
org.apache.pulsar.broker.auth.MockedPulsarServiceBaseTest {
}
public class org.apache.pulsar.client.api.OneTest extends org.apache.pulsar.client.api.ProducerConsumerBase {
}
public final class org.apache.pulsar.client.api.AnotherTest<T> extends org.apache.pulsar.client.api.OneTest {
}
public class org.apache.pulsar.client.api.PureTest {
}
public abstract class org.apache.pulsar.security.MockedPulsarStandalone {
}
public class org.apache.pulsar.broker.admin.AloneTest extends org.apache.pulsar.security.MockedPulsarStandalone {
}
public interface org.apache.pulsar.client.api.Listener {
}
""".replace("\\\n", "")


def test_classes_with_a_broker_are_chosen_through_all_their_parents() -> None:
    assert with_a_broker(LISTING) == [
        "org.apache.pulsar.broker.admin.AloneTest",
        "org.apache.pulsar.client.api.AnotherTest",
        "org.apache.pulsar.client.api.OneTest",
    ]


def test_verdicts_are_read_from_between_other_output() -> None:
    output = "noise\n@@\tPASS\tOneTest.a\t12\t\n@@\tFAIL\tOneTest.b[1, x]\t3\texpected 1\n@@ broken\n"
    assert verdicts(output) == [
        Verdict("PASS", "OneTest.a", 12, ""),
        Verdict("FAIL", "OneTest.b[1, x]", 3, "expected 1"),
    ]


def test_a_stand_in_is_compiled_for_each_state_of_its_sources(tmp_path: Path) -> None:
    (tmp_path / "A.java").write_text("class A {}")
    (tmp_path / "B.java").write_text("")
    before = digest(tmp_path.glob("*.java"))
    assert digest(sorted(tmp_path.glob("*.java"), reverse=True)) == before
    (tmp_path / "B.java").write_text("class B {}")
    changed = digest(tmp_path.glob("*.java"))
    (tmp_path / "B.java").rename(tmp_path / "C.java")
    assert len({before, changed, digest(tmp_path.glob("*.java"))}) == 3


def test_every_class_of_the_stand_in_is_named_in_the_reading_list() -> None:
    named = set(re.findall(r"`(\w+)`", tools.apache_tests.__doc__ or ""))
    assert {path.stem for path in SOURCES.glob("*.java")} <= named


def test_every_library_has_an_exact_version() -> None:
    assert all(re.fullmatch(r"[\w.-]+:[\w-]+:[\d.]+(:jar:tests)?", artifact) for artifact in ARTIFACTS)


def test_the_stand_in_says_the_words_that_the_verdicts_have() -> None:
    said = {
        word
        for path in SOURCES.glob("*.java")
        for word in re.findall(r'"(PASS|FAIL|SKIP|SETUP|INSIDE|REFUSED)"', path.read_text())
    }
    assert said == {"PASS", "FAIL", "SKIP", "SETUP", "INSIDE", "REFUSED"}


def test_all_methods_of_a_class_that_are_named_are_chosen_and_no_other_class() -> None:
    names = ["org.OneTest", "org.OneTestOfMore", "org.AnOneTest", "org.Other"]
    assert chosen(names, []) == names
    assert chosen(names, ["OneTest#a", "OneTest#b"]) == ["org.OneTest#a", "org.OneTest#b"]
    assert chosen(names, ["OneTest#a", "Oth"]) == ["org.OneTest#a", "org.Other"]
    assert chosen(names, ["OneTest", "OneTest#a"]) == names[:3]
    assert chosen(names, ["org.Other#a"]) == ["org.Other#a"]
