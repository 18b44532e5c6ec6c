"""Whatever a pod holds: a refusal with a sentence, or a pod and a template that are valid."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from casaba.model.ids import GpuUuid
from casaba.policy.allocation import Refused
from casaba.policy.cel import check_selector
from casaba.policy.convert import (
    ClusterFacts,
    Conversion,
    PodRefused,
    convert_pod,
    strip_update,
    wants_conversion,
)
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import Object, copied
from casaba.simulation.api_server.statuses import ApiError
from casaba.simulation.api_server.strategy import validated
from tests.unit.policy.convert.case import Case
from tests.unit.policy.convert.cases import CASES
from tests.unit.policy.convert.clusters import Cluster, gpus
from tests.unit.policy.convert.pods import MIB, NOTHING, THREE_SIZES, gpu, patched, pod
from tests.unit.policy.convert.test_cases import TEMPLATES, WARNING_CHARACTERS, template_object
from tests.unit.simulation.api_objects import PODS, created

SETTINGS = ConversionSettings()

texts = (
    st.text(max_size=8)
    | st.just("\ud800\n")
    | st.sampled_from(
        ["nvidia.com/gpu", "nvidia.com/gpumem", "1", "10Gi", "Always", "true", "ignore", "mutex"]
    )
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(document: Any) -> list[tuple[Any, Any]]:
    """Each (parent, key) of a document."""
    keys: list[Any] = []
    if isinstance(document, dict):
        keys = list(document)
    elif isinstance(document, list):
        keys = list(range(len(document)))
    found = [(document, key) for key in keys]
    for key in keys:
        found += places(document[key])
    return found


@st.composite
def spoilt_pods(draw: st.DrawFn) -> tuple[Object, Case]:
    """A pod of the table with some of its parts replaced, taken away or doubled."""
    case = draw(st.sampled_from(CASES))
    document = copied(case.pod)
    for _ in range(draw(st.integers(1, 3))):
        parent, key = draw(st.sampled_from(places(document) or [(document, "x")]))
        what = draw(st.sampled_from(["replace", "remove", "double"]))
        if what == "replace":
            parent[key] = draw(values)
        elif key in parent if isinstance(parent, dict) else key < len(parent):
            if what == "remove":
                del parent[key]
            elif isinstance(parent, list):
                parent.append(copied(parent[key]))
            else:
                parent[draw(texts)] = copied(parent[key])
    return document, case


def outcome(document: Any, case: Case) -> Conversion | None:
    """None: refused, in one line that can be sent."""
    try:
        return convert_pod(document, case.facts, case.settings)
    except PodRefused as error:
        refusal = error
    assert refusal.code in (400, 403, 422)
    assert str(refusal).encode()
    assert "\n" not in str(refusal)
    return None


def wrong_fields(document: Object) -> set[str] | None:
    """Fields that the API server refuses; None if it can't even read the pod."""
    try:
        whole = created(PODS, document)
        return {error.field for error in validated(PODS, whole, None, "")}
    except (ApiError, KeyError, TypeError, AttributeError, UnicodeEncodeError):
        return None


@settings(max_examples=300, deadline=None)
@given(spoilt_pods())
def test_spoilt_pods(spoilt: tuple[Object, Case]) -> None:
    document, case = spoilt
    before = json.dumps(document)
    conversion = outcome(document, case)
    assert json.dumps(document) == before
    event("refused" if conversion is None else "converted" if conversion.patch else "untouched")
    if conversion is None:
        return
    changed = patched(document, conversion)
    assert outcome(changed, case) == Conversion()
    assert all(len(warning) <= WARNING_CHARACTERS for warning in conversion.warnings)
    if conversion.templates:
        template = created(TEMPLATES, template_object(conversion))
        assert validated(TEMPLATES, template, None, "") == ()
    wrong = wrong_fields(document)
    event(f"readable: {wrong is not None}")
    if wrong is not None:
        left = wrong_fields(changed)
        assert left is not None
        assert left <= wrong


@settings(max_examples=200, deadline=None)
@given(spoilt_pods(), spoilt_pods())
def test_updates_between_spoilt_pods(
    first: tuple[Object, Case], second: tuple[Object, Case]
) -> None:
    try:
        conversion = strip_update(first[0], second[0], SETTINGS)
    except PodRefused:
        return
    patched(second[0], conversion)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(texts, values, max_size=4))
def test_any_json(document: Object) -> None:
    assert outcome(document, CASES[0]) == Conversion() or wants_conversion(document, SETTINGS)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        [
            "nvidia.com/use-gpuuuid",
            "nvidia.com/nouse-gpuuuid",
            "nvidia.com/use-gputype",
            "nvidia.com/nouse-gputype",
        ]
    ),
    st.text(max_size=80) | st.lists(st.text(max_size=12), max_size=40).map(",".join),
    st.sampled_from([THREE_SIZES, NOTHING]),
)
def test_any_choice_is_refused_or_a_selector_that_the_api_server_takes(
    annotation: str, text: str, facts: ClusterFacts
) -> None:
    try:
        conversion = convert_pod(
            pod(main=gpu(1, mem=1), annotations={annotation: text}), facts, SETTINGS
        )
    except PodRefused:
        return
    (template,) = conversion.templates
    (request,) = template.spec["spec"]["devices"]["requests"]
    for selector in request["exactly"]["selectors"]:
        check_selector(selector["cel"]["expression"])


PRODUCTS = ("NVIDIA A10", "NVIDIA A100-SXM4-80GB", "Tesla T4", "NVIDIA L4")
NODES = {
    f"node-{index}": gpus(1000 * (index + 1), product=product)
    for index, product in enumerate(PRODUCTS)
}
choices = st.dictionaries(
    st.sampled_from(["nvidia.com/use-gputype", "nvidia.com/nouse-gputype"]),
    st.lists(
        st.sampled_from(["a10", "A100", "t4", "NVIDIA", "L", "4", "H200"]), min_size=1, max_size=3
    ).map(",".join),
)
choices_by_uuid = st.dictionaries(
    st.sampled_from(["nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"]),
    st.lists(st.sampled_from([f"GPU-{n}" for n in range(5)]), min_size=1, max_size=3).map(",".join),
)


@settings(max_examples=60, deadline=None)
@given(choices, choices_by_uuid)
def test_the_cards_that_are_counted_are_those_that_the_scheduler_may_take(
    by_type: dict[str, str], by_uuid: dict[str, str]
) -> None:
    """Each node has one card of its own size, and a percentage names the sizes that count."""
    nodes = {
        node: (replace(card, uuid=GpuUuid(f"GPU-{index}")),)
        for index, (node, (card,)) in enumerate(NODES.items())
    }
    cluster = Cluster(**nodes)
    annotations = {**by_type, **by_uuid}
    small = convert_pod(pod(main=gpu(1, mem=1), annotations=annotations), cluster.facts, SETTINGS)
    taken = {
        f"{cards[0].memory_bytes // MIB}mi"
        for node, cards in nodes.items()
        if not isinstance(cluster.place(small, node), Refused)
    }
    try:
        half = convert_pod(
            pod(main=gpu(1, percent=50), annotations=annotations), cluster.facts, SETTINGS
        )
    except PodRefused:
        assert not taken
        return
    (template,) = half.templates
    (request,) = template.spec["spec"]["devices"]["requests"]
    assert {alternative["name"] for alternative in request["firstAvailable"]} == taken
