"""Whatever is in a claim, it is judged; and what is judged well can be allocated."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from casaba.policy.admit import Verdict, judge_claim
from casaba.policy.allocation import Allocated, Allocator, CandidateNode
from casaba.wire.kubernetes import ObjectMeta, ResourceClaim, ResourceClaimSpec
from tests.unit.policy.admit.claims import (
    DRIVER,
    Spec,
    a_class,
    a_slice,
    claim,
    first_of,
    flat,
    request,
)
from tests.unit.values import A10, NODE

NAMES = [
    *("devices", "requests", "constraints", "config", "name", "exactly", "firstAvailable"),
    *("deviceClassName", "count", "allocationMode", "adminAccess", "selectors", "cel"),
    *("expression", "capacity", "opaque", "driver", "parameters", "cores", "memory"),
    *("matchAttribute", "distinctAttribute", "apiVersion", "kind", "weight"),
]
scalars: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([DRIVER, "All", "gpu", f"{DRIVER}/uuid", "casaba.dev/v1alpha1", "1Gi"])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)
"""JSON that may look like a part of a claim."""

FIELDS = ("count", "allocationMode", "adminAccess", "selectors", "capacity", "tolerations")
ours = st.fixed_dictionaries(
    {"deviceClassName": st.just(DRIVER)},
    optional=dict.fromkeys(FIELDS, anything),
)
nearly_claims = st.fixed_dictionaries(
    {
        "devices": st.fixed_dictionaries(
            {
                "requests": st.lists(
                    st.builds(lambda form: {"name": "gpu", "exactly": form}, ours) | anything,
                    max_size=3,
                )
            },
            optional={"constraints": anything, "config": anything},
        )
    }
)

amounts = st.fixed_dictionaries(
    {},
    optional={
        "cores": st.integers(-1, 102) | st.sampled_from(["500m", "99500m", "1k"]),
        "memory": st.sampled_from(
            ["0", "1Mi", "1048577", "10G", "10Gi", "23028Mi", "23029Mi", "1e9"]
        ),
        "gpumem": st.just(1),
    },
)
requests = amounts.map(lambda asked: request(capacity={"requests": asked})) | st.lists(
    amounts, min_size=1, max_size=3
).map(lambda forms: first_of(*forms))


@given(anything | nearly_claims)
def test_nothing_raises(spec: Any) -> None:
    verdict = judge_claim(spec, (a_slice(),), a_class())
    assert all(len(text) < 2000 for text in (*verdict.refusals, *verdict.warnings))


def allocated(spec: Spec) -> bool:
    """Whether the scheduler would find devices on the empty card."""
    text = msgspec.json.encode(spec)
    read = msgspec.json.decode(_with_texts(text), type=ResourceClaimSpec)
    allocator = Allocator(
        slices=(a_slice(),), classes=a_class(), allocated=(), new_share_id=lambda: ""
    )
    whole = ResourceClaim(metadata=ObjectMeta(name="c", namespace="n"), spec=read)
    return isinstance(allocator.allocate(CandidateNode(name=NODE), [whole]), Allocated)


def _with_texts(text: bytes) -> bytes:
    """Quantities as the API server stores them."""
    spec = msgspec.json.decode(text)
    for one in spec["devices"]["requests"]:
        for form in one.get("firstAvailable", [one.get("exactly")]):
            asked = form["capacity"]["requests"]
            form["capacity"]["requests"] = {key: str(value) for key, value in asked.items()}
    return msgspec.json.encode(spec)


@given(requests)
def test_what_is_judged_well_can_be_had(asked: Spec) -> None:
    spec = claim(asked)
    verdict = judge_claim(spec, (a_slice(),), a_class())
    if verdict.refusals:
        return
    pending = any("stay Pending" in warning for warning in verdict.warnings)
    assert allocated(spec) != pending


@given(amounts)
def test_the_form_of_v1beta1_is_judged_alike(asked: Spec) -> None:
    new = request(capacity={"requests": asked})
    paths = [
        _without_form(judge_claim(claim(form), (a_slice(A10.device_name),), a_class()))
        for form in (new, flat(new))
    ]
    assert paths[0] == paths[1]


def _without_form(verdict: Verdict) -> tuple[list[str], list[str]]:
    return (
        [text.replace(".exactly", "") for text in verdict.refusals],
        [text.replace(".exactly", "") for text in verdict.warnings],
    )
