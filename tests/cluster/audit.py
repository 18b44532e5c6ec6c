"""Which calls service accounts made to the API server, by its own audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

Event = dict[str, Any]

_BINDINGS = ("rolebindings", "clusterrolebindings")
_PREFIX = "system:serviceaccount:"
_RBAC = {"group": "rbac.authorization.k8s.io", "resources": list(_BINDINGS)}
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    # A watch is known from its start; it may end after everything else.
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "Metadata", "verbs": ["create", "delete"], "resources": [_RBAC]},
    ],
}
"""Who called what, of all service accounts but Kubernetes' own, and when rights came and went; no
contents."""


@dataclass(frozen=True)
class Call:
    """One kind of call on a resource. Of its object, what is decided by; empty where it has none.

    Attributes:
        account: NAMESPACE/NAME of the service account.
        resource: with its subresource, as roles have it: `pods/proxy`.
        program: first word of the user agent.
        refused: answered by 403.
        unbound: of a refused call, names of bindings that had been deleted by then.
    """

    account: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    program: str
    dry_run: bool = False
    refused: bool = False
    unbound: frozenset[str] = frozenset()


def calls(log: Path, start: int = 0) -> Iterator[Call]:
    """Every call of an audit log from an offset in bytes on, in the order of the answers."""
    unbound: set[str] = set()
    for event in sorted(_events(log, start), key=_instant):
        if event["user"]["username"].startswith(_PREFIX):
            yield _call(event, frozenset(unbound))
        else:
            _note(event, unbound)


def size(log: Path) -> int:
    """Where the next event will be."""
    return log.stat().st_size if log.is_file() else 0


def _events(log: Path, start: int) -> Iterator[Event]:
    if not log.is_file():
        return
    with log.open("rb") as lines:
        lines.seek(start)
        for line in lines:
            event = json.loads(line)
            if "objectRef" in event:
                yield event


def _instant(event: Event) -> str:
    """When it had an effect at the earliest: a deletion before it is answered."""
    is_deletion = event["objectRef"]["resource"] in _BINDINGS and event["verb"] == "delete"
    instant: str = event["requestReceivedTimestamp" if is_deletion else "stageTimestamp"]
    return instant


def _note(event: Event, unbound: set[str]) -> None:
    name = event["objectRef"].get("name", "")
    if event["verb"] == "delete":
        unbound.add(name)
    else:
        unbound.discard(name)


def _call(event: Event, unbound: frozenset[str]) -> Call:
    target: dict[str, str] = event["objectRef"]
    refused = event.get("responseStatus", {}).get("code") == 403
    parts = (target["resource"], target.get("subresource"))
    return Call(
        account=event["user"]["username"].removeprefix(_PREFIX).replace(":", "/"),
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource="/".join(part for part in parts if part),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        program=event.get("userAgent", "").split("/")[0],
        dry_run="dryRun" in parse_qs(urlsplit(event["requestURI"]).query),
        refused=refused,
        unbound=unbound if refused else frozenset(),
    )
