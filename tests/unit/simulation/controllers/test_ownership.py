"""Who goes when an owner goes."""

from typing import Any

from casaba import kube
from casaba.kube import ObjectKey, Resource
from casaba.simulation.controllers.ownership import (
    FOREGROUND,
    ORPHAN,
    Collection,
    Item,
    OwnedMetadata,
    Owner,
    OwnerGraph,
    plan_collection,
)

KINDS = (kube.PODS, kube.NODES, kube.RESOURCE_CLAIMS, kube.RESOURCE_SLICES)


def owner(uid: str, kind: str = "Pod", *, blocks: bool = False) -> Owner:
    return Owner(api_version="v1", kind=kind, name=uid, uid=uid, block_owner_deletion=blocks)


def item(
    uid: str,
    *owners: Owner,
    resource: Resource[Any] = kube.PODS,
    leaving: bool = False,
    **more: Any,
) -> Item:
    metadata = OwnedMetadata(
        name=uid,
        uid=uid,
        namespace="default" if resource.namespaced else "",
        owner_references=owners,
        deletion_timestamp="2030-01-01T00:00:00Z" if leaving else None,
        **more,
    )
    return Item(resource, metadata)


def graph(*items: Item) -> OwnerGraph:
    made = OwnerGraph(KINDS)
    for one in items:
        made.put(one)
    return made


def test_an_object_without_owners_or_with_one_that_is_there_stays() -> None:
    free, parent = item("free"), item("parent")
    child = item("child", owner("parent"))
    known = graph(free, parent, child)
    assert plan_collection(known, free, []) == Collection()
    assert plan_collection(known, child, []) == Collection()
    assert known.is_there(child, owner("parent"))


def test_the_last_owner_takes_the_object_along() -> None:
    child = item("child", owner("parent"))
    assert plan_collection(graph(child), child, ["parent"]) == Collection(delete="Background")


def test_one_of_two_owners_is_only_forgotten() -> None:
    child = item("child", owner("gone"), owner("parent"))
    known = graph(item("parent"), child)
    assert plan_collection(known, child, ["gone"]) == Collection(disown=("gone",))


def test_an_owner_that_waits_takes_its_dependents_first_and_theirs_before_them() -> None:
    parent = item("parent", leaving=True, finalizers=(FOREGROUND,))
    child = item("child", owner("parent", blocks=True))
    known = graph(parent, child)
    assert plan_collection(known, child, []) == Collection(delete="Background")
    assert known.is_blocked("parent")
    known.put(item("grandchild", owner("child")))
    assert plan_collection(known, child, []) == Collection(delete="Foreground")
    known.remove("child")
    assert not known.is_blocked("parent")


def test_what_somebody_chose_for_an_object_is_kept() -> None:
    for finalizer, policy in ((ORPHAN, "Orphan"), (FOREGROUND, "Foreground")):
        child = item("child", owner("parent"), finalizers=(finalizer,))
        assert plan_collection(graph(child), child, ["parent"]) == Collection(delete=policy)


def test_an_owner_is_looked_for_where_it_must_be() -> None:
    child = item("child", owner("parent"))
    known = graph(child)
    assert known.place_of(child, owner("parent")) == (
        kube.PODS,
        ObjectKey("default", "parent"),
    )
    sliced = item("slice", owner("node", "Node"), resource=kube.RESOURCE_SLICES)
    assert known.place_of(sliced, owner("node", "Node")) == (kube.NODES, ObjectKey("", "node"))
    assert known.place_of(sliced, owner("parent")) is None
    assert known.place_of(child, owner("set", "ReplicaSet")) is None


def test_the_same_uid_at_another_place_is_not_the_owner() -> None:
    child = item("child", Owner(api_version="v1", kind="Pod", name="other", uid="parent"))
    known = graph(item("parent"), child)
    assert not known.is_there(child, child.metadata.owner_references[0])


def test_dependents_are_known_after_their_owner_is_gone() -> None:
    child = item("child", owner("parent"))
    known = graph(item("parent"), child)
    known.remove("parent")
    assert known.dependents("parent") == (child,)
    known.put(item("child"))
    assert known.dependents("parent") == ()


def test_an_owner_that_is_named_twice_is_one() -> None:
    made = graph(item("a", owner("x"), owner("x")))
    made.put(item("a", owner("x")))
    made.remove("a")
    assert made.dependents("x") == ()
