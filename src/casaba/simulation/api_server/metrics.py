"""What `/metrics` tells: the requests so far, and which feature gates are on, as in 1.36.

In the text format of Prometheus. A few of the real server's metrics, by their names and labels.
"""

from collections import Counter
from collections.abc import Iterator

from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.write_options import is_apply

_FEATURES = {
    "DRAAdminAccess": ("", 1),
    "DRAConsumableCapacity": ("BETA", 1),
    "DRADeviceBindingConditions": ("BETA", 1),
    "DRADeviceTaintRules": ("BETA", 0),
    "DRADeviceTaints": ("BETA", 1),
    "DRAExtendedResource": ("BETA", 1),
    "DRAListTypeAttributes": ("ALPHA", 0),
    "DRANodeAllocatableResources": ("ALPHA", 0),
    "DRAPartitionableDevices": ("BETA", 1),
    "DRAPrioritizedList": ("", 1),
    "DRAResourceClaimDeviceStatus": ("BETA", 1),
    "DRAResourceClaimGranularStatusAuthorization": ("BETA", 1),
    "DRAResourcePoolStatus": ("ALPHA", 0),
    "DRASchedulerFilterTimeout": ("BETA", 1),
    "DRAWorkloadResourceClaims": ("ALPHA", 0),
    "DynamicResourceAllocation": ("", 1),
}
"""Stage (none once it is generally available) and whether it is on by default."""

_VERBS = {"create": "POST", "update": "PUT", "deletecollection": "DELETE"}
_FEATURE_HEAD = """\
# HELP kubernetes_feature_enabled Stage and enablement of a feature.
# TYPE kubernetes_feature_enabled gauge"""
_REQUEST_HEAD = """\
# HELP apiserver_request_total Requests by verb, resource, scope and HTTP response code.
# TYPE apiserver_request_total counter"""


class RequestTotals:
    """Counts the requests of resources."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def note(self, request: ResourceRequest, code: int) -> None:
        """A request was answered; a watch counts when it ends."""
        info = request.resource
        labels = {
            "code": code,
            "component": "apiserver",
            "dry_run": "All" if request.dry_run else "",
            "group": info.group,
            "resource": info.plural,
            "scope": _scope(request),
            "subresource": request.subresource,
            "verb": _verb(request),
            "version": info.version,
        }
        self._counts[",".join(f'{name}="{value}"' for name, value in labels.items())] += 1

    def text(self) -> str:
        """All metrics."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield _REQUEST_HEAD
        for labels, count in sorted(self._counts.items()):
            yield f"apiserver_request_total{{{labels}}} {count}"
        yield _FEATURE_HEAD
        for name, (stage, enabled) in _FEATURES.items():
            yield f'kubernetes_feature_enabled{{name="{name}",stage="{stage}"}} {enabled}'


def _verb(request: ResourceRequest) -> str:
    return "APPLY" if is_apply(request) else _VERBS.get(request.verb, request.verb.upper())


def _scope(request: ResourceRequest) -> str:
    if request.name or request.verb == "create":
        return "resource"
    return "namespace" if request.namespace else "cluster"
