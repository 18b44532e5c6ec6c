"""Our allocator as one side of the comparison."""

from collections.abc import Iterator
from itertools import count

import msgspec

from casaba.policy.allocation import (
    Allocated,
    AllocationFailed,
    Allocator,
    CandidateNode,
    Refused,
)
from casaba.wire.kubernetes import DeviceClass, ResourceClaim, ResourceSlice
from tests.conformance.allocator.building import Json, node_name
from tests.conformance.allocator.case import Case, Denied, Failed, Given, Outcome


def allocator(case: Case) -> Allocator:
    classes = msgspec.convert(case.classes, list[DeviceClass])
    return Allocator(
        slices=msgspec.convert(case.slices, list[ResourceSlice]),
        classes={class_.metadata.name: class_ for class_ in classes},
        allocated=msgspec.convert(case.holders, list[ResourceClaim]),
        new_share_id=map("share-{}".format, count()).__next__,
    )


def outcome(case: Case, short_name: str) -> Outcome:
    """What our allocator says of a node."""
    try:
        found = _allocated(case, short_name)
    except AllocationFailed as error:
        return Failed(str(error))
    if isinstance(found, Refused):
        return Denied(found.reason)
    return outcome_of(msgspec.json.decode(msgspec.json.encode(found.results)))


def devices_given(case: Case, short_name: str) -> list[Json]:
    """The results that our allocator writes; none if it refuses."""
    try:
        found = _allocated(case, short_name)
    except AllocationFailed:
        return []
    results = found.results if isinstance(found, Allocated) else ()
    written: list[Json] = msgspec.json.decode(msgspec.json.encode(results))
    return [result for allocation in written for result in allocation["devices"]["results"]]


def _allocated(case: Case, short_name: str) -> Allocated | Refused:
    node = next(n for n in case.nodes if n["metadata"]["name"] == node_name(short_name))
    candidate = CandidateNode(name=node["metadata"]["name"], labels=node["metadata"]["labels"])
    claims = msgspec.convert(case.claims, list[ResourceClaim])
    return allocator(case).allocate(candidate, claims)


def outcome_of(allocations: list[Json]) -> Given:
    """Results of claims, in their order, in the form of the cases."""
    return Given(
        devices=tuple(text for allocation in allocations for text in _devices(allocation)),
        node_selector=allocations[0].get("nodeSelector", {}),
        config=tuple(map(_config, allocations[0]["devices"].get("config", []))),
    )


def _devices(allocation: Json) -> Iterator[str]:
    for result in allocation["devices"].get("results", []):
        amounts = sorted(result.get("consumedCapacity", {}).items())
        parts = [f"{result['request']}={result['device']}", *(f"{k}={v}" for k, v in amounts)]
        yield " ".join(parts)


def _config(config: Json) -> str:
    parameters = config["opaque"]["parameters"]
    written = ",".join(f"{key}={value}" for key, value in parameters.items())
    return f"{config['source']} {','.join(config.get('requests', []))} {written}"


def agrees(expected: Outcome, seen: Outcome) -> bool:
    """Whether what was seen is what is expected, as far as that says."""
    if isinstance(expected, Given) and isinstance(seen, Given):
        return (
            expected.devices == seen.devices
            and expected.node_selector in (None, seen.node_selector)
            and expected.config in (None, seen.config)
        )
    if isinstance(expected, Given) or isinstance(seen, Given):
        return False
    return type(expected) is type(seen) and expected.words in seen.words
