"""Label and field selectors against a plain model of what they mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.field_selectors import field_terms, required_name
from casaba.simulation.api_server.label_selectors import label_requirements
from casaba.simulation.api_server.resources import RESOURCES, find_resource
from casaba.simulation.api_server.selectors import parsed_field_selector, parsed_label_selector
from casaba.simulation.api_server.statuses import ApiError

KEYS = st.sampled_from(["a", "b.c", "example.com/d", "in", "notin"])
VALUES = st.sampled_from(["", "x", "y-1", "in", "10"])
LABELS = st.dictionaries(KEYS, VALUES)
SPACE = st.sampled_from(["", " ", "\t "])
PODS = find_resource("", "v1", "pods")
assert PODS is not None


@st.composite
def requirements(draw: st.DrawFn) -> tuple[str, str, str, frozenset[str]]:
    """A condition as text, and its key, operator and values."""
    key, space = draw(KEYS), draw(SPACE)
    operator = draw(st.sampled_from(["=", "==", "!=", "in", "notin", "exists", "!"]))
    if operator in ("in", "notin"):
        values = draw(st.lists(VALUES, min_size=1, max_size=3))
        text = f"{key} {operator}{space}({space}{f',{space}'.join(values)})"
        return text, key, operator, frozenset(values)
    if operator in ("exists", "!"):
        return (f"!{space}{key}" if operator == "!" else key), key, operator, frozenset()
    value = draw(VALUES)
    return f"{key}{space}{operator}{space}{value}", key, operator, frozenset({value})


def holds(key: str, operator: str, values: frozenset[str], labels: dict[str, str]) -> bool:
    """What a condition means."""
    match operator:
        case "exists":
            return key in labels
        case "!":
            return key not in labels
        case "=" | "==" | "in":
            return labels.get(key) in values
    return labels.get(key) not in values


@given(st.lists(requirements(), max_size=4), LABELS)
def test_a_selector_means_what_its_parts_mean(
    parts: list[tuple[str, str, str, frozenset[str]]], labels: dict[str, str]
) -> None:
    matches = parsed_label_selector(",".join(text for text, *_ in parts))
    expected = all(holds(key, operator, values, labels) for _, key, operator, values in parts)
    assert matches(labels) == expected


@given(st.text(alphabet="ab=!<>(),. /\tin1_-", max_size=20))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    code = 200
    try:
        parsed_label_selector(text)({"a": "b"})
    except ApiError as refusal:
        code = refusal.code
    assert code in (200, 400)


@given(st.text(alphabet="ab=!,\\. ", max_size=20))
def test_any_text_is_a_field_selector_or_refused(text: str) -> None:
    assert PODS is not None
    code = 200
    try:
        parsed_field_selector(PODS, text)({"metadata": {"name": "a"}})
    except ApiError as refusal:
        code = refusal.code
    assert code in (200, 400)


@given(st.text(max_size=8))
def test_an_escaped_value_is_found(value: str) -> None:
    assert PODS is not None
    escaped = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    pod = {"metadata": {"name": value}}
    assert parsed_field_selector(PODS, f"metadata.name={escaped}")(pod)
    assert not parsed_field_selector(PODS, f"metadata.name!={escaped}")(pod)


def test_numbers_are_compared_as_numbers() -> None:
    assert parsed_label_selector("a>9")({"a": "10"})
    assert not parsed_label_selector("a<9")({"a": "10"})
    assert not parsed_label_selector("a>9")({"a": "ten"})
    assert not parsed_label_selector("a>9")({})


def test_conditions_keep_their_order() -> None:
    found = [(item.key, item.operator) for item in label_requirements("b=1,!a,c in (x)")]
    assert found == [("b", "="), ("a", "!"), ("c", "in")]


def test_a_selector_for_one_name_is_known() -> None:
    assert PODS is not None
    assert required_name(field_terms(PODS, "metadata.name=a,status.phase!=Failed")) == "a"
    assert required_name(field_terms(PODS, "metadata.name!=a")) is None


POD = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "edge-1", "hostNetwork": True},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]},
}
EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "uid": "u"},
    "reportingComponent": "kubelet",
}


@pytest.mark.parametrize(
    ("plural", "object_", "selector"),
    [
        ("pods", POD, "spec.nodeName=edge-1"),
        ("pods", POD, "spec.host=edge-1"),
        ("pods", POD, "spec.hostNetwork=true"),
        ("pods", POD, "status.podIP=10.0.0.1,status.phase=Running"),
        ("pods", POD, "status.nominatedNodeName="),
        ("pods", POD, "status.podIPs="),
        ("nodes", {"metadata": {"name": "n"}}, "spec.unschedulable=false"),
        ("nodes", {"spec": {"unschedulable": True}}, "spec.unschedulable=true"),
        ("events", EVENT, "involvedObject.kind=Pod,source=kubelet,reason="),
        ("secrets", {"type": "Opaque"}, "type=Opaque"),
    ],
)
def test_fields_read_as_text(plural: str, object_: dict[str, object], selector: str) -> None:
    info = find_resource("", "v1", plural)
    assert info is not None
    assert parsed_field_selector(info, selector)(object_)


@pytest.mark.parametrize("info", RESOURCES, ids=lambda info: info.plural)
def test_every_kind_is_selected_by_name_only_unless_it_says_more(info: object) -> None:
    known = next(found for found in RESOURCES if found is info)
    assert parsed_field_selector(known, "metadata.name=a")({"metadata": {"name": "a"}})
    with pytest.raises(ApiError) as refused:
        parsed_field_selector(known, "no.such=a")
    assert "no.such" in str(refused.value)
