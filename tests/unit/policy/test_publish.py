"""Whatever is on the API server, one plan makes it right and the next has nothing to do."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casaba.model.ids import NodeName
from casaba.policy.publish import PublishedSlice, dropped_fields, plan_publish
from casaba.policy.slices import Spec, slice_spec
from tests.unit.values import A10, NODE


def desired(generation: int) -> Spec:
    return slice_spec(NODE, [A10], generation)


def published(name: str, spec: Spec) -> PublishedSlice:
    return PublishedSlice(name=name, uid=name, resource_version="1", spec=spec)


specs = st.one_of(
    st.integers(1, 9).map(desired),
    st.integers(1, 9).map(lambda generation: slice_spec(NODE, [], generation)),
    st.integers(1, 9).map(lambda generation: slice_spec(NodeName("renamed"), [A10], generation)),
)


@given(st.lists(specs, max_size=4))
def test_one_plan_is_enough(found: list[Spec]) -> None:
    server = {f"slice-{n}": published(f"slice-{n}", spec) for n, spec in enumerate(found)}
    plan = plan_publish(desired, list(server.values()))
    for gone in plan.delete:
        del server[gone.name]
    for changed, spec in plan.replace:
        server[changed.name] = published(changed.name, spec)
    for number, spec in enumerate(plan.create):
        server[f"new-{number}"] = published(f"new-{number}", spec)
    (left,) = server.values()
    assert left.spec == desired(left.generation)
    assert plan_publish(desired, [left]).is_empty


@given(st.lists(specs, min_size=1, max_size=4))
def test_the_pools_generation_never_goes_back(found: list[Spec]) -> None:
    existing = [published(f"slice-{n}", spec) for n, spec in enumerate(found)]
    plan = plan_publish(desired, existing)
    newest = max(slice_.generation for slice_ in existing)
    written = [*plan.create, *(spec for _, spec in plan.replace)]
    assert all(spec["pool"]["generation"] >= newest for spec in written)


def test_a_foreign_edit_is_undone_in_place() -> None:
    edited: dict[str, Any] = desired(4)
    edited["devices"] = []
    plan = plan_publish(desired, [published("a", edited)])
    assert [(slice_.name, spec) for slice_, spec in plan.replace] == [("a", desired(4))]


def test_dropped_fields_are_named() -> None:
    stored: dict[str, Any] = desired(1)
    del stored["devices"][0]["allowMultipleAllocations"]
    assert dropped_fields(desired(1), stored) == ("spec.devices[0].allowMultipleAllocations",)
