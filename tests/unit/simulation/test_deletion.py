"""Deletion as a state machine: what holds an object, and that it goes when nothing does."""

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casaba.simulation.api_server.delete_options import DeleteOptions
from casaba.simulation.api_server.deletion import deletion, goes_by_update
from casaba.simulation.api_server.resources import RESOURCES, ResourceInfo
from casaba.simulation.api_server.statuses import ApiError

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
CLAIMS, PODS, NAMESPACES = (
    next(info for info in RESOURCES if info.plural == plural)
    for plural in ("resourceclaims", "pods", "namespaces")
)


def object_of(info: ResourceInfo, **spec: Any) -> dict[str, Any]:
    """An object as it is stored."""
    metadata = {"name": "a", "uid": "u", "resourceVersion": "5"}
    return {"kind": info.kind, "metadata": metadata, "spec": spec}


def without_finalizer(object_: dict[str, Any], name: str) -> dict[str, Any]:
    """The object with a finalizer fewer."""
    left = [each for each in object_["metadata"]["finalizers"] if each != name]
    return {**object_, "metadata": {**object_["metadata"], "finalizers": left}}


@given(
    st.lists(st.sampled_from(["x.io/a", "x.io/b", "x.io/c"]), unique=True),
    st.sampled_from(["", "Background", "Foreground", "Orphan"]),
    st.integers(1, 3),
    st.randoms(),
)
def test_an_object_goes_exactly_when_its_last_finalizer_does(
    finalizers: list[str], policy: str, times: int, random: Any
) -> None:
    object_ = object_of(CLAIMS)
    object_["metadata"]["finalizers"] = finalizers
    for _ in range(times):
        asked = deletion(CLAIMS, object_, DeleteOptions(propagation=policy), NOW)
        object_ = asked.object
    held = object_["metadata"].get("finalizers") or []
    assert asked.goes == (not held)
    assert set(finalizers) <= set(held)
    random.shuffle(held)
    for name in list(held):
        assert object_["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
        assert not goes_by_update(object_, object_)
        object_, before = without_finalizer(object_, name), object_
        assert goes_by_update(before, object_) == (not object_["metadata"]["finalizers"])


@pytest.mark.parametrize(
    ("spec", "phase", "asked_s", "grace_s"),
    [
        ({}, "Pending", 30, 0),
        ({"nodeName": "n"}, "Running", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 5, 5),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Succeeded", 5, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Failed", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", -1, 1),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 0, 0),
    ],
)
def test_a_pod_gets_the_time_that_it_or_the_request_names(
    spec: dict[str, Any], phase: str, asked_s: int | None, grace_s: int
) -> None:
    pod = {**object_of(PODS, **spec), "status": {"phase": phase}}
    asked = deletion(PODS, pod, DeleteOptions(grace_period_s=asked_s), NOW)
    assert asked.object["metadata"]["deletionGracePeriodSeconds"] == grace_s
    assert asked.goes == (grace_s == 0)


def test_grace_can_only_get_shorter() -> None:
    pod = object_of(PODS, nodeName="n", terminationGracePeriodSeconds=30)
    first = deletion(PODS, pod, DeleteOptions(), NOW).object
    assert first["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:30Z"
    longer = deletion(PODS, first, DeleteOptions(grace_period_s=60), NOW)
    assert (longer.object, longer.goes) == (first, False)
    again = deletion(PODS, first, DeleteOptions(), NOW)
    assert (again.object, again.goes) == (first, False)
    shorter = deletion(PODS, first, DeleteOptions(grace_period_s=10), NOW).object
    assert shorter["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:10Z"
    assert deletion(PODS, shorter, DeleteOptions(grace_period_s=0), NOW).goes


def test_a_pod_with_a_finalizer_stays_after_its_end() -> None:
    pod = object_of(PODS, nodeName="n")
    pod["metadata"]["finalizers"] = ["x.io/a"]
    ended = deletion(PODS, pod, DeleteOptions(grace_period_s=0), NOW)
    assert not ended.goes
    assert goes_by_update(ended.object, without_finalizer(ended.object, "x.io/a"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (DeleteOptions(uid="other"), r"the UID in the precondition \(other\) does not match"),
        (DeleteOptions(resource_version="4"), r"the ResourceVersion in the precondition \(4\)"),
    ],
)
def test_a_precondition_that_fails_is_a_conflict(options: DeleteOptions, words: str) -> None:
    with pytest.raises(ApiError, match=words) as refused:
        deletion(CLAIMS, object_of(CLAIMS), options, NOW)
    assert refused.value.code == 409
    assert deletion(CLAIMS, object_of(CLAIMS), DeleteOptions(uid="u"), NOW).goes


def test_a_namespace_terminates_until_it_is_finalized() -> None:
    namespace = object_of(NAMESPACES, finalizers=["kubernetes"])
    asked = deletion(NAMESPACES, namespace, DeleteOptions(), NOW)
    assert (asked.goes, asked.object["status"]["phase"]) == (False, "Terminating")
    finalized = {**asked.object, "spec": {}}
    assert goes_by_update(asked.object, finalized)
    assert not goes_by_update(asked.object, asked.object)


def test_the_default_namespace_stays() -> None:
    namespace = object_of(NAMESPACES)
    namespace["metadata"]["name"] = "default"
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        deletion(NAMESPACES, namespace, DeleteOptions(), NOW)
