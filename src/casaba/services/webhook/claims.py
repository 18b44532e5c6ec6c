"""Reviews of claims and templates that people write themselves."""

from typing import Any

from casaba.policy.admit import Verdict, judge_claim
from casaba.services.webhook.answers import Answer, ReviewRefused, expect_kind
from casaba.services.webhook.cluster import ClusterView
from casaba.services.webhook.workbench import Workbench
from casaba.wire.admission import AdmissionRequest

_VERSIONS = ("v1", "v1beta2", "v1beta1")
_CLAIMS = tuple(f"resource.k8s.io/{version} ResourceClaim" for version in _VERSIONS)
_TEMPLATES = tuple(f"resource.k8s.io/{version} ResourceClaimTemplate" for version in _VERSIONS)

_INVALID = 422


class ClaimJudge:
    """Answers whether a claim can ever be served."""

    def __init__(self, cluster: ClusterView, bench: Workbench) -> None:
        self._cluster = cluster
        self._bench = bench

    async def judge(self, request: AdmissionRequest) -> Answer:
        """Raises ReviewRefused and BadReview.

        Only new ones are judged: a spec never changes, and an update that takes away a finalizer
        must not fail on an old one.
        """
        expect_kind(request, *_CLAIMS, *_TEMPLATES)
        if request.operation != "CREATE" or request.sub_resource:
            return Answer()
        size_bytes = len(memoryview(request.object))
        verdict = await self._bench.work(size_bytes, self._verdict, request)
        if verdict.refusals:
            message = "; ".join(verdict.refusals)
            raise ReviewRefused(message, code=_INVALID, warnings=verdict.warnings)
        return Answer(warnings=verdict.warnings)

    def _verdict(self, request: AdmissionRequest) -> Verdict:
        """Before the slices are known there is only less to warn of."""
        spec, at = _object(request.new().get("spec")), "spec"
        if str(request.kind) in _TEMPLATES:
            spec, at = _object(spec.get("spec")), "spec.spec"
        return judge_claim(spec, self._cluster.slices, self._cluster.classes, at=at)


def _object(found: Any) -> dict[str, Any]:
    """What is no object is refused by the API server itself."""
    return found if isinstance(found, dict) else {}
