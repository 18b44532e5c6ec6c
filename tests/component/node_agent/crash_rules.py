"""What a node must keep to, however often its agent is killed."""

import json
from pathlib import Path

from casaba.model.ids import ClaimUid
from casaba.model.prepared import CheckpointEntry
from casaba.model.quantity import parse
from casaba.wire.cdi import claim_of_spec_file, is_unfinished_spec
from casaba.wire.checkpoint import parse_entry
from casaba.wire.policy_file import parse_policy
from tests.component.node_agent.crash_site import CrashSite, Object
from tests.unit.values import A10

Inodes = dict[str, tuple[int, ...]]
"""Policy and region of each budget folder, by inode."""


def entries(site: CrashSite) -> dict[ClaimUid, CheckpointEntry]:
    """The checkpoint as it lies on the disk."""
    files = site.paths.checkpoint_dir.glob("*.json")
    read = [parse_entry(path.read_bytes()) for path in files if not path.name.startswith(".")]
    return {entry.claim.uid: entry for entry in read}


def check_nothing_promised_twice(site: CrashSite) -> None:
    """At every moment: what the node has promised fits on its card."""
    shares = [share for entry in entries(site).values() for share in entry.claim.shares]
    assert sum(share.memory_bytes for share in shares) <= A10.memory_bytes
    assert sum(share.cores_percent for share in shares) <= 100
    ids = [share.share_id for share in shares]
    assert len(ids) == len(set(ids))


def check_whole(site: CrashSite, *pods: str) -> Inodes:
    """When all is quiet: exactly what these pods need is on the host; returns their budgets."""
    check_nothing_promised_twice(site)
    claims = {one["metadata"]["uid"]: one for pod in pods for one in site.claims_of(pod)}
    assert set(entries(site)) == set(claims)
    assert list(site.paths.checkpoint_dir.glob(".*")) == []
    assert {path.name for path in site.paths.claims_dir.iterdir()} == set(claims)
    names = [path.name for path in site.paths.cdi_dir.iterdir()]
    assert not any(map(is_unfinished_spec, names)), names
    assert {claim_of_spec_file(name) for name in names} - {None} == set(claims)
    known = json.loads((site.paths.kubelet_dir / "dra_manager_state").read_text())
    assert {state["uid"] for state in known["claims"]} == set(claims)
    assert len(site.slices()) == 1
    return {key: inodes for uid in claims for key, inodes in _budgets(site, claims[uid]).items()}


def _budgets(site: CrashSite, claim: Object) -> Inodes:
    """The budget folders of a claim, one for each result, with the limits of the allocation."""
    folder = site.paths.claims_dir / claim["metadata"]["uid"]
    results = {one["request"]: one for one in claim["status"]["allocation"]["devices"]["results"]}
    assert {path.name for path in folder.iterdir() if path.name[0] != "."} == set(results)
    for request, result in results.items():
        (card,) = parse_policy((folder / request / "policy").read_bytes()).cards
        consumed = result["consumedCapacity"]
        assert card.memory_bytes == parse(consumed["memory"])
        assert card.cores_percent == parse(consumed["cores"])
    return {str(folder / request): _inodes(folder / request) for request in results}


def _inodes(folder: Path) -> tuple[int, ...]:
    return tuple((folder / name).stat().st_ino for name in ("policy", "region"))
