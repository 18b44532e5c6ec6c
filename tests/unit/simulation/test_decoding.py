"""Bodies become objects, or a refusal that names the field."""

import pytest

from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.strategy import decoded
from tests.unit.simulation.api_objects import (
    CLAIMS,
    CONFIG_MAPS,
    PODS,
    body,
    claim,
    pod,
    read,
    resource,
)

JSON, YAML = "application/json", "application/yaml"


def refusal(info: ResourceInfo, text: bytes, content_type: str = JSON, how: str = "") -> str:
    with pytest.raises(ApiError) as refused:
        decoded(info, text, content_type, how)
    assert refused.value.code == 400
    return str(refused.value)


def test_json_and_yaml_say_the_same() -> None:
    text = b"metadata: {name: map}\ndata:\n  a: '1'\n"
    from_yaml, _ = decoded(CONFIG_MAPS, text, YAML, "Strict")
    assert from_yaml == read(CONFIG_MAPS, {"metadata": {"name": "map"}, "data": {"a": "1"}})


def test_the_kind_may_be_left_out_and_is_written() -> None:
    assert read(PODS, pod())["kind"] == "Pod"
    assert read(CLAIMS, claim())["apiVersion"] == "resource.k8s.io/v1"


def test_an_unknown_field_is_refused_told_or_ignored() -> None:
    text = body(pod(contaners=[]))
    assert refusal(PODS, text, how="Strict") == (
        'Pod in version "v1" cannot be handled as a Pod: '
        'strict decoding error: unknown field "spec.contaners"'
    )
    assert decoded(PODS, text, JSON, "")[1] == ('unknown field "spec.contaners"',)
    assert decoded(PODS, text, JSON, "Ignore")[1] == ()
    assert "contaners" not in decoded(PODS, text, JSON, "")[0]["spec"]


def test_fields_are_matched_with_their_case() -> None:
    _, warnings = decoded(PODS, body({**pod(), "Spec": {}}), JSON, "")
    assert warnings == ('unknown field "Spec"',)


def test_a_repeated_field_is_told_and_the_last_counts() -> None:
    text = b'{"metadata": {"name": "a", "name": "b"}, "data": {"k": "1", "k": "2"}}'
    object_, warnings = decoded(CONFIG_MAPS, text, JSON, "Warn")
    assert object_["metadata"]["name"] == "b"
    assert warnings == ('duplicate field "metadata.name"', 'duplicate field "data.k"')


def test_yaml_tells_the_line_of_a_repeated_key() -> None:
    text = b"metadata:\n  name: a\n  name: b\n"
    assert decoded(CONFIG_MAPS, text, YAML, "")[1] == ('line 3: key "name" already set in map',)
    assert "yaml: unmarshal errors:\n  line 3:" in refusal(CONFIG_MAPS, text, YAML, "Strict")


@pytest.mark.parametrize(
    ("spec", "given", "told"),
    [
        ({"containers": "x"}, "string", "PodSpec.spec.containers of type []v1.Container"),
        ({"containers": [{"name": 3}]}, "number", "Container.spec.containers.name of type string"),
        ({"priority": 1.5}, "number 1.5", "PodSpec.spec.priority of type int32"),
        ({"priority": 5 * 10**9}, "number 5000000000", "PodSpec.spec.priority of type int32"),
        ({"hostNetwork": "yes"}, "string", "PodSpec.spec.hostNetwork of type bool"),
        ({"nodeSelector": {"a": 1}}, "number", "PodSpec.spec.nodeSelector of type string"),
    ],
)
def test_a_wrong_type_is_told_with_its_field(
    spec: dict[str, object], given: str, told: str
) -> None:
    message = refusal(PODS, body(pod(**spec)))
    assert message.endswith(f"json: cannot unmarshal {given} into Go struct field {told}")


def test_quantities_and_times_are_checked_and_rewritten() -> None:
    limits = {"cpu": 1, "memory": "1024Mi"}
    container = {"name": "main", "image": "i", "resources": {"limits": limits}}
    read_pod = read(PODS, pod(containers=[container]))
    assert read_pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    container["resources"] = {"limits": {"cpu": "much"}}
    assert "quantities must match the regular" in refusal(PODS, body(pod(containers=[container])))
    late = {"metadata": {"name": "a", "creationTimestamp": "yesterday"}}
    assert 'cannot parse "yesterday" as "2006"' in refusal(CONFIG_MAPS, body(late))
    in_time = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T01:00:00+01:00"}}
    assert read(CONFIG_MAPS, in_time)["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_lease_wants_six_digits_of_a_second() -> None:
    leases = resource("leases")
    lease = {"metadata": {"name": "a"}, "spec": {"renewTime": "2026-01-01T00:00:00Z"}}
    assert '2006-01-02T15:04:05.000000Z07:00"' in refusal(leases, body(lease))
    lease["spec"] = {"renewTime": "2026-01-01T00:00:00.000001Z"}
    assert read(leases, lease)["spec"] == lease["spec"]


def test_nulls_and_empty_collections_say_nothing() -> None:
    given = {"metadata": {"name": "a", "labels": {}, "finalizers": []}, "data": None}
    assert read(CONFIG_MAPS, given)["metadata"] == {"name": "a"}


def test_another_kind_is_refused() -> None:
    assert refusal(PODS, body({**pod(), "kind": "Node", "apiVersion": "v1"})) == (
        'Node in version "v1" cannot be handled as a Pod: '
        "converting (v1.Node) to (core.Pod): unknown conversion"
    )
    assert 'no kind "Bus" is registered' in refusal(PODS, body({**pod(), "kind": "Bus"}))


def test_another_version_of_the_group_is_refused() -> None:
    assert refusal(CLAIMS, body({**claim(), "apiVersion": "resource.k8s.io/v1beta1"})) == (
        "the API version in the data (resource.k8s.io/v1beta1) does not match the expected API "
        "version (resource.k8s.io/v1)"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "unexpected end of JSON input (<empty>)"),
        (b"{", "unexpected end of JSON input ({)"),
        (b"hello", "invalid character 'h' looking for beginning of value (68656c6c6f)"),
        (b"[]", "(5b5d)"),
        (b'{"a": NaN}', "NaN is no JSON value"),
        (b"[" * 100_000, "invalid JSON"),
    ],
)
def test_a_body_that_is_no_object_is_shown(text: bytes, told: str) -> None:
    message = refusal(PODS, text)
    assert message.startswith("the object provided is unrecognized (must be of type Pod): ")
    assert told in message


def test_yaml_is_read_as_go_reads_it() -> None:
    text = b"data: {a: 2026-01-01, b: '12', c: 1:30}\nimmutable: y\n"
    object_, _ = decoded(CONFIG_MAPS, text, YAML, "Strict")
    assert object_["data"] == {"a": "2026-01-01", "b": "12", "c": "1:30"}
    assert object_["immutable"] is True


def test_broken_yaml_tells_what_is_missing() -> None:
    assert "did not find expected node content" in refusal(CONFIG_MAPS, b"a: [", YAML)


def test_a_secret_in_clear_text_is_stored_encoded() -> None:
    secret = read(resource("secrets"), {"metadata": {"name": "a"}, "stringData": {"a": "b"}})
    assert (secret["data"], secret["type"]) == ({"a": "Yg=="}, "Opaque")
    assert "stringData" not in secret
    bad = body({"metadata": {"name": "a"}, "data": {"a": "$$"}})
    assert "illegal base64 data at input byte 0" in refusal(resource("secrets"), bad)
