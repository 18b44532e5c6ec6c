"""Reviews of pods: decide, let the templates be there, then answer."""

from casaba.policy.convert import (
    ClusterFacts,
    Conversion,
    PodRefused,
    strip_update,
    wants_conversion,
)
from casaba.services.webhook.answers import TRY_AGAIN, Answer, ReviewRefused, expect_kind
from casaba.services.webhook.cluster import ClusterView
from casaba.services.webhook.plans import Plans
from casaba.services.webhook.templates import TemplateKeeper
from casaba.services.webhook.workbench import Workbench
from casaba.settings.conversion import ConversionSettings
from casaba.wire.admission import AdmissionRequest

_POD = "v1 Pod"


class PodJudge:
    """Answers what becomes of a pod that is created or updated."""

    def __init__(
        self,
        cluster: ClusterView,
        templates: TemplateKeeper,
        bench: Workbench,
        settings: ConversionSettings,
    ) -> None:
        self._cluster = cluster
        self._templates = templates
        self._bench = bench
        self._settings = settings
        self._plans = Plans(settings)

    async def judge(self, request: AdmissionRequest) -> Answer:
        """Raises ReviewRefused and BadReview; templates may have been made by then.

        The templates come before the answer: a pod without its template waits for ever, while a
        template without its pod is collected.
        """
        expect_kind(request, _POD)
        if request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
            return Answer()
        conversion = await self._decide(request)
        for wanted in conversion.templates:
            await self._templates.keep(request.namespace, wanted, dry_run=bool(request.dry_run))
        names = ",".join(wanted.name for wanted in conversion.templates)
        return Answer(
            patch=conversion.patch,
            warnings=conversion.warnings,
            audit_annotations={"resource-claim-templates": names} if names else {},
        )

    async def _decide(self, request: AdmissionRequest) -> Conversion:
        missing = self._cluster.missing()
        facts = None if missing else self._cluster.facts(request.namespace)
        size_bytes = len(memoryview(request.object)) + len(memoryview(request.old_object))
        try:
            return await self._bench.work(size_bytes, self._decided, request, facts)
        except PodRefused as refusal:
            raise ReviewRefused(str(refusal), code=refusal.code) from refusal
        except _TooEarly as early:
            message = f"the webhook is starting: {missing}; {TRY_AGAIN}"
            raise ReviewRefused(message, code=503) from early

    def _decided(self, request: AdmissionRequest, facts: ClusterFacts | None) -> Conversion:
        """Raises PodRefused, BadReview and, without facts that are needed, _TooEarly."""
        pod = request.new_pod()
        if request.operation == "UPDATE":
            return strip_update(request.old_pod(), pod, self._settings)
        if facts is not None:
            return self._plans.plan(pod, facts)
        if wants_conversion(pod, self._settings):
            raise _TooEarly
        return Conversion()


class _TooEarly(Exception):
    """The facts that a pod needs are not known yet."""
