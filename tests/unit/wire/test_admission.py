"""Reviews are read tolerantly, and answers are what the API server takes."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casaba.simulation.api_server.admission_reviews import (
    BadAnswer,
    patch_operations,
    read_answer,
)
from casaba.wire.admission import (
    API_VERSION,
    KIND,
    WARNING_CHARS,
    WARNINGS_CHARS,
    BadReview,
    allowing,
    fitting_warnings,
    read_request,
    refusing,
    uid_of,
)

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(**request: Any) -> dict[str, Any]:
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "request": {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": "team-a",
            "operation": "CREATE",
            "object": {"metadata": {"name": "one"}},
            "oldObject": None,
            "dryRun": False,
            **request,
        },
    }


def body(**request: Any) -> bytes:
    return json.dumps(review(**request)).encode()


def refused(content: bytes) -> BadReview:
    with pytest.raises(BadReview) as error:
        read_request(content)
    return error.value


def test_a_request_is_read_and_its_object_when_it_is_wanted() -> None:
    request = read_request(body(futureField=[1], name="one", subResource="status"))
    assert (request.uid, request.namespace, request.operation) == (UID, "team-a", "CREATE")
    assert (str(request.kind), request.name, request.sub_resource) == ("v1 Pod", "one", "status")
    assert request.new() == {"metadata": {"name": "one"}}


def test_groups_are_told() -> None:
    kind = {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"}
    assert str(read_request(body(kind=kind)).kind) == "resource.k8s.io/v1 ResourceClaim"


def test_dry_run_may_be_left_out_or_null() -> None:
    assert not read_request(body(dryRun=None)).dry_run
    assert read_request(body(dryRun=True)).dry_run


@pytest.mark.parametrize(
    ("field", "value"), [("object", None), ("object", []), ("object", "x"), ("oldObject", None)]
)
def test_an_object_that_is_none_is_named(field: str, value: Any) -> None:
    request = read_request(body(**{field: value}))
    with pytest.raises(BadReview, match=f"request.{field} is not a JSON object") as error:
        request.new() if field == "object" else request.old()
    assert error.value.uid == UID


def test_bytes_that_are_no_utf8_are_a_refusal_with_the_uid() -> None:
    content = body().replace(b'"one"', b'"\xff\xfe"')
    with pytest.raises(BadReview, match="object is wrong") as error:
        read_request(content).new()
    assert (error.value.uid, error.value.code) == (UID, 400)


@pytest.mark.parametrize(
    ("content", "message", "uid"),
    [
        (b"", "no AdmissionReview", ""),
        (b"hello", "no AdmissionReview", ""),
        (b"[]", "no AdmissionReview", ""),
        (b"{}", "admissionReviewVersions", ""),
        (b"\xff", "no AdmissionReview", ""),
        (body()[:-9], "no AdmissionReview", UID),
        (b"[" * 100_000, "no AdmissionReview", ""),
        (json.dumps(review() | {"kind": 7}).encode(), "no AdmissionReview", UID),
        (body(uid=""), "request.uid is empty", ""),
        (body(uid=7), r"\$\.request\.uid", ""),
        (body(namespace=7), r"\$\.request\.namespace", UID),
        (json.dumps({"kind": KIND, "apiVersion": API_VERSION}).encode(), "`request`", ""),
    ],
)
def test_what_is_no_review_is_told_with_the_uid_if_there_is_one(
    content: bytes, message: str, uid: str
) -> None:
    error = refused(content)
    assert (error.uid, error.code) == (uid, 400)
    with pytest.raises(BadReview, match=message):
        raise error


@pytest.mark.parametrize(
    "fields",
    [{"apiVersion": "admission.k8s.io/v1beta1"}, {"apiVersion": ""}, {"kind": "Review" * 100}],
)
def test_another_version_is_named_with_the_fix(fields: dict[str, Any]) -> None:
    error = refused(json.dumps(review() | fields).encode())
    assert error.uid == UID
    assert "admissionReviewVersions: [v1]" in str(error)
    assert len(str(error)) < 400


def test_the_uid_of_a_cut_body_is_where_go_writes_it() -> None:
    assert uid_of(body()[:200]) == UID
    other = {"request": {"object": {"uid": "not-this"}, "uid": "this"}}
    assert uid_of(json.dumps(other).encode()) == "this"
    assert uid_of(json.dumps(other).encode()[:45]) == ""


def test_a_patch_comes_back_as_it_was() -> None:
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "ü"}}]
    content = allowing(UID, patch=patch, warnings=["one"], audit_annotations={"a": "b"})
    answer = read_answer(content, UID, may_patch=True)
    assert (answer.allowed, answer.warnings) == (True, ["one"])
    assert patch_operations(answer) == patch
    assert json.loads(content)["response"]["auditAnnotations"] == {"a": "b"}


def test_without_a_patch_there_is_no_patch_type() -> None:
    assert json.loads(allowing(UID))["response"] == {"uid": UID, "allowed": True}


@pytest.mark.parametrize(
    ("code", "reason"), [(400, "BadRequest"), (422, "Invalid"), (503, "ServiceUnavailable")]
)
def test_a_refusal_has_code_reason_and_message(code: int, reason: str) -> None:
    answer = read_answer(refusing(UID, code=code, message="why"), UID, may_patch=False)
    assert not answer.allowed
    assert answer.status == {
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": "why",
    }


def test_warnings_are_on_one_line_and_each_is_told_once() -> None:
    assert fitting_warnings(["a\nb\x07", "", "  ", "a b"]) == ("a b",)


def test_a_long_warning_is_cut_as_the_server_would() -> None:
    (told,) = fitting_warnings(["x" * 1000])
    assert len(told) == WARNING_CHARS
    assert told.endswith("…")


@settings(deadline=None)
@given(st.lists(st.text(), max_size=60), st.text(max_size=40))
def test_the_server_drops_no_warning(warnings: list[str], uid: str) -> None:
    told = fitting_warnings([*warnings, *(text * 50 for text in warnings)])
    assert all(text.isprintable() and 0 < len(text) <= WARNING_CHARS for text in told)
    assert sum(map(len, told)) <= WARNINGS_CHARS
    answer = read_answer(allowing(uid, warnings=told), uid, may_patch=True)
    assert tuple(answer.warnings or ()) == told


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.binary(max_size=200) | _json.map(lambda value: json.dumps(value).encode()))
def test_anything_is_a_request_or_a_bad_review(content: bytes) -> None:
    try:
        uid = read_request(content).uid
        assert uid
    except BadReview as error:
        uid = error.uid
    read_answer(refusing(uid, code=400, message="no"), uid, may_patch=False)


@settings(deadline=None)
@given(st.data())
def test_damage_behind_the_uid_never_loses_it(data: st.DataObject) -> None:
    content = body()
    begin = content.index(UID.encode()) + len(UID) + 1
    at = data.draw(st.integers(begin, len(content)))
    other = data.draw(st.binary(max_size=3).filter(lambda put: b"u" not in put))
    try:
        uid = read_request(content[:at] + other + content[at + 1 :]).uid
    except BadReview as error:
        uid = error.uid
    assert uid == UID


def test_patches_are_base64() -> None:
    patch = json.loads(allowing(UID, patch=[{"op": "remove", "path": "/a"}]))["response"]["patch"]
    assert json.loads(base64.b64decode(patch)) == [{"op": "remove", "path": "/a"}]


def test_the_api_server_refuses_an_answer_to_another_question() -> None:
    with pytest.raises(BadAnswer, match=r"expected response\.uid"):
        read_answer(allowing("other"), UID, may_patch=True)
