"""JSON bodies: read strictly, coerced as Apache Pulsar's parser does (rule 11.1.4)."""

from __future__ import annotations

import json
import time

import pytest

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import LEVELS_MAX, VALUES_MAX, read_document
from magnetar.model.errors import InvalidValueError
from magnetar.model.policies import Json
from tests.admin.rest_client import RestClient

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, -2.5, true, null, "\\u00e9\\ud83d\\ude00"]}', {"a": [1, -2.5, True, None, "é😀"]}),
        (b" 9223372036854775807 ", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"[" * LEVELS_MAX + b"]" * LEVELS_MAX, ...),
    ],
)
def test_documents_are_read_as_json(body: bytes, value: object) -> None:
    assert value is ... or read_document(body) == value
    read_document(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"3 4", "not JSON"),
        (b"NaN", "NaN is no number"),
        (b'{"a": -Infinity}', "-Infinity is no number"),
        (b"1e999", "too large"),
        (b"9223372036854775808", "beyond 64 bits"),
        (b"1" * 10_000, "beyond 64 bits"),
        (b'{"a": 1, "b": 2, "a": 3}', 'member "a" comes twice'),
        (b'"\xed\xa0\x80"', "not JSON"),
        (b'"\xff"', "not JSON"),
        (b'\xff\xfe1\x00', "not JSON"),
        (b'"\\ud800"', "the text has a lone surrogate, \\ud800"),
        (b'{"a": {"b": [0, "x\\uDFFFy"]}}', "the text of 'a.b[1]' has a lone surrogate, \\udfff"),
        (b'{"a": {"\\ud800": 1}}', "the name of a member of 'a' has a lone surrogate"),
        (b"[" * (LEVELS_MAX + 1) + b"]" * (LEVELS_MAX + 1), f"more than {LEVELS_MAX} levels"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
    ],
)  # fmt: skip
def test_documents_that_could_not_be_stored_are_refused(body: bytes, said: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        read_document(body)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("value", [3, "3", " 3 ", 3.0, "+3"])
def test_numbers_may_be_quoted_or_whole_fractions(value: Json) -> None:
    assert coercion.number(value) == 3


@pytest.mark.parametrize("value", [True, None, "", "x", "3.0", 3.5, [3], {}, "٣", "9" * 20, 1e19, "1_0"])
def test_other_values_are_no_numbers(value: Json) -> None:
    with pytest.raises(InvalidValueError, match="whole number"):
        coercion.number(value)


def test_numbers_have_bounds() -> None:
    assert coercion.small_number(2**31 - 1) == 2**31 - 1
    with pytest.raises(InvalidValueError, match="from -2147483648 to 2147483647, got 2147483648"):
        coercion.small_number("2147483648")


@pytest.mark.parametrize(("value", "flag"), [(True, True), ("True", True), ("FALSE", False), (1, True), (0, False)])
def test_flags_may_be_quoted_or_numbers(value: Json, flag: bool) -> None:
    assert coercion.flag(value) is flag


@pytest.mark.parametrize("value", ["yes", "", 1.0, None, [True]])
def test_other_values_are_no_flags(value: Json) -> None:
    with pytest.raises(InvalidValueError, match="true or false"):
        coercion.flag(value)


def test_texts_may_be_numbers_or_flags() -> None:
    assert coercion.texts({"a": 5, "b": True, "c": None, "d": 1.5, "e": "x"}) == {
        "a": "5", "b": "true", "d": "1.5", "e": "x"
    }  # fmt: skip
    with pytest.raises(InvalidValueError, match='as "a"'):
        coercion.texts({"a": {}})


def test_a_rust_client_sends_the_count_in_quotes(rest: RestClient) -> None:
    assert rest.put("/admin/v2/persistent/ref/main/q/partitions", content=b'"3"', headers=JSON).status_code == 204
    assert rest.get("/admin/v2/persistent/ref/main/q/partitions").json()["partitions"] == 3


def test_properties_that_are_no_texts(rest: RestClient) -> None:
    path = "/admin/v2/namespaces/ref/main/properties"
    assert rest.put(path, json={"a": 5, "b": None, "c": False}).status_code == 204
    assert rest.get(path).json() == {"a": "5", "c": "false"}


def test_a_lone_surrogate_is_refused_and_named(rest: RestClient) -> None:
    path = "/admin/v2/namespaces/ref/main/properties"
    refused = rest.put(path, content=b'{"note": "\\ud800"}', headers=JSON)
    assert refused.status_code == 400
    assert "note" in refused.json()["reason"]
    assert rest.get(path).json() == {}


def test_parameters_of_the_wrong_type_are_named(rest: RestClient) -> None:
    refused = rest.get("/admin/v2/persistent/ref/main/t/messageid/soon")
    assert refused.status_code == 400
    assert refused.json().keys() == {"reason"}
    assert "timestamp" in refused.json()["reason"]


def test_a_member_that_comes_twice_is_found_in_one_pass() -> None:
    names = [f"m{number}" for number in range(99_000)]
    body = "{" + ",".join(f'"{name}":0' for name in [*names, names[-1]]) + "}"
    began = time.process_time()
    with pytest.raises(InvalidValueError, match=r'member "m98999" comes twice'):
        read_document(body.encode())
    assert time.process_time() - began < 20  # it was minutes


def test_the_number_of_values_is_bounded_and_commas_in_texts_are_none() -> None:
    text = '"' + '\\"' * 10 + "," * 20 + '"'
    assert read_document(f"[{text}, {text}]".encode(), 3) == [json.loads(text)] * 2
    with pytest.raises(InvalidValueError, match="it has more than 3 values"):
        read_document(b"[1,1,1,1]", 3)
    with pytest.raises(InvalidValueError, match="not JSON"):
        read_document(b'["' + b'\\"' * 200_000, 3)
    with pytest.raises(InvalidValueError, match=f"more than {VALUES_MAX} values"):
        read_document(b"[" + b"1," * VALUES_MAX + b"1]")
