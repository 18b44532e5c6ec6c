"""What the chart's roles let each service account do, one permission at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tests.chart.rendering import Object, Rendered


@dataclass(frozen=True, order=True)
class Grant:
    """One verb on one resource.

    Attributes:
        account: NAMESPACE/NAME of the service account.
        resource: with its subresource: `pods/proxy`.
        namespace: of the objects; empty: everywhere.
        name: of the object; empty: any.
        binding: name of the binding that gives it.
    """

    account: str
    group: str
    resource: str
    verb: str
    namespace: str
    name: str
    binding: str

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        kind = ".".join(part for part in (self.resource, self.group) if part)
        return f"{self.account}: {self.verb} {kind} {self.name}".rstrip() + place


def grants(chart: Rendered) -> set[Grant]:
    """Everything that the chart's own bindings give."""
    return {
        grant
        for binding in chart.of("ClusterRoleBinding", "RoleBinding")
        for grant in _of_binding(chart, binding)
    }


def _of_binding(chart: Rendered, binding: Object) -> Iterator[Grant]:
    role = chart.one(binding["roleRef"]["kind"], binding["roleRef"]["name"])
    for subject, rule in itertools.product(binding["subjects"], role["rules"]):
        for group, resource, verb, name in itertools.product(
            rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [""])
        ):
            yield Grant(
                account=f"{subject['namespace']}/{subject['name']}",
                group=group,
                resource=resource,
                verb=verb,
                namespace=binding["metadata"].get("namespace", ""),
                name=name,
                binding=binding["metadata"]["name"],
            )
