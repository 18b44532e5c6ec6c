"""What a refusal says."""

from casaba.kube.errors import Forbidden, Gone, refusal, refusal_of_answer
from casaba.wire.kubernetes import Status


def test_a_long_message_is_cut() -> None:
    error = refusal("get /x", Status(code=500, message="m" * 5000))
    assert len(str(error)) < 1100
    assert "…" in str(error)


def test_a_status_without_a_message() -> None:
    assert str(refusal("get /x", Status(code=500))) == "get /x: the server gave no reason (500)"


def test_advice_comes_last() -> None:
    error = refusal("get /x", Status(code=403, reason="Forbidden", message="no"))
    assert isinstance(error, Forbidden)
    assert str(error) == "get /x: no (403 Forbidden); grant it with RBAC"


def test_the_code_of_http_stands_over_that_of_the_body() -> None:
    assert isinstance(refusal_of_answer("get /x", 410, b'{"code":500}', None), Gone)
