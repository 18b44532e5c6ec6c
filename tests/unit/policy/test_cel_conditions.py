"""Match conditions of webhooks over JSON objects."""

import pytest

from casaba.policy.cel import CelCompileError, CelRuntimeError, compiled_condition

POD = {"metadata": {"name": "p", "labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}
REQUEST = {"operation": "CREATE", "resource": {"resource": "pods"}, "userInfo": {"groups": ["g"]}}


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("request.operation == 'CREATE' && request.resource.resource == 'pods'", True),
        ("object.metadata.?labels['app'].orValue('') == 'x'", True),
        ("has(object.metadata.annotations)", False),
        ("object.spec.containers.exists(c, c.name == 'c')", True),
        ("'g' in request.userInfo.groups", True),
        ("oldObject == null", True),
        ("!object.metadata.name.startsWith('p')", False),
    ],
)
def test_a_condition(expression: str, holds: bool) -> None:
    variables = {"object": POD, "request": REQUEST}
    assert compiled_condition(expression).holds(variables) is holds


def test_a_missing_field_is_an_error() -> None:
    with pytest.raises(CelRuntimeError, match="no such key: annotations"):
        compiled_condition("object.metadata.annotations.x == 'y'").holds({"object": POD})


def test_a_condition_on_what_is_not_there_is_an_error() -> None:
    with pytest.raises(CelRuntimeError, match="no such overload"):
        compiled_condition("oldObject.metadata.name == 'p'").holds({"object": POD})


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("objct.x == 1", "undeclared reference to 'objct'"),
        ("1 + 1", "must evaluate to bool but got int"),
        ("object", "must evaluate to bool but got dyn"),
    ],
)
def test_a_condition_that_is_wrong(expression: str, words: str) -> None:
    with pytest.raises(CelCompileError, match=words):
        compiled_condition(expression)
