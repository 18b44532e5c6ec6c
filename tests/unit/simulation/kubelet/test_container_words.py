"""Command lines and environments of containers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.kubelet.container_words import (
    ContainerNotConfigurable,
    command_line,
    container_environment,
    expanded,
    sources_of,
)

POD: dict[str, Any] = {
    "metadata": {
        "name": "pod",
        "namespace": "space",
        "uid": "1-2",
        "labels": {"app": "x"},
        "annotations": {"note/a": "y"},
    },
    "spec": {"nodeName": "node-1", "serviceAccountName": "sa", "containers": []},
}


def environment(*env: dict[str, Any], sources: Any = None, **fields: Any) -> dict[str, str]:
    container = {"name": "main", "env": list(env), **fields}
    return container_environment(container, POD, sources or {}, {"BASE": "b"})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("x$(A)$(B)y", "x12y"),
        ("$(NONE)", "$(NONE)"),
        ("$$(A)", "$(A)"),
        ("$$", "$"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("", ""),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, result: str) -> None:
    assert expanded(text, {"A": "1", "B": "2"}) == result


@given(st.text())
def test_an_escaped_text_comes_out_as_it_was(text: str) -> None:
    assert expanded(text.replace("$", "$$"), {"A": "1"}) == text


@pytest.mark.parametrize(
    ("command", "args", "result"),
    [
        ([], [], ("run", "image")),
        (["own"], [], ("own",)),
        ([], ["arg"], ("run", "arg")),
        (["own"], ["$(BASE)"], ("own", "b")),
    ],
)
def test_command_and_args_replace_the_images(
    command: list[str], args: list[str], result: tuple[str, ...]
) -> None:
    container = {"name": "main", "command": command, "args": args}
    assert command_line(container, ("run", "image"), {"BASE": "b"}) == result


def test_later_variables_see_earlier_ones() -> None:
    found = environment({"name": "A", "value": "$(BASE)1"}, {"name": "C", "value": "$(A)2"})
    assert found == {"BASE": "b", "A": "b1", "C": "b12"}


def test_fields_of_the_pod_become_variables() -> None:
    paths = {
        "metadata.name": "pod",
        "metadata.namespace": "space",
        "metadata.uid": "1-2",
        "metadata.labels['app']": "x",
        "metadata.annotations['note/a']": "y",
        "spec.nodeName": "node-1",
        "status.podIP": "127.0.0.1",
    }
    for path, value in paths.items():
        entry = {"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}
        assert environment(entry)["V"] == value


def test_config_maps_and_secrets_become_variables() -> None:
    sources = {("ConfigMap", "c"): {"k": "1"}, ("Secret", "s"): {"t": "2"}}
    found = environment(
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "t"}}},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "no", "key": "t", "optional": True}}},
        sources=sources,
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "c"}}],
    )
    assert found == {"BASE": "b", "P_k": "1", "A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ({"configMapKeyRef": {"name": "no", "key": "k"}}, 'configmap "no" not found'),
        ({"secretKeyRef": {"name": "s", "key": "no"}}, "couldn't find key no in Secret space/s"),
        ({"fieldRef": {"fieldPath": "spec.nope"}}, "unsupported fieldPath: spec.nope"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "limits neither CPU nor memory"),
        ({"fileKeyRef": {}}, "valueFrom fileKeyRef is not supported"),
    ],
)
def test_what_can_not_be_had_is_named(origin: dict[str, Any], message: str) -> None:
    with pytest.raises(ContainerNotConfigurable) as refused:
        environment({"name": "A", "valueFrom": origin}, sources={("Secret", "s"): {}})
    assert message in str(refused.value)


def test_all_sources_of_a_pod_are_known() -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]
    env_from = [{"secretRef": {"name": "s"}}]
    spec = {"containers": [{"env": env}], "initContainers": [{"envFrom": env_from}]}
    assert set(sources_of({"spec": spec})) == {("ConfigMap", "c"), ("Secret", "s")}
