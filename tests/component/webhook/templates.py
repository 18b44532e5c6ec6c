"""Templates of the webhook's, and replicas that see them or don't."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from casaba.kube import (
    RESOURCE_CLAIM_TEMPLATES,
)
from casaba.simulation.api_server.faults import LostEvents, Target
from tests.component.webhook.site import (
    NAMESPACE,
    Object,
    Replica,
    Site,
    classic_pod,
    review_of,
)

LAST_USED = "casaba.dev/last-used"
LONG_AGO = "2026-01-02T03:04:05Z"
TEMPLATES = ("resourceclaimtemplates",)
WATCHED = Target(verbs={"watch"}, resources=TEMPLATES)


def template_of(pod: Object) -> str:
    """The template that a stored pod names."""
    (claim,) = pod["spec"]["resourceClaims"]
    return str(claim["resourceClaimTemplateName"])


async def age(site: Site, stamp: str) -> None:
    """Let every template have been used then."""
    for template in site.templates():
        name = template["metadata"]["name"]
        await site.client.patch(
            RESOURCE_CLAIM_TEMPLATES,
            name,
            {"metadata": {"annotations": {LAST_USED: stamp}}},
            namespace=NAMESPACE,
        )


def stamps(site: Site) -> list[str]:
    return [template["metadata"]["annotations"][LAST_USED] for template in site.templates()]


def is_allowed(replica: Replica) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return bool((await replica.post(review_of(classic_pod())))["allowed"])

    return look


async def outcomes(replica: Replica) -> dict[str, float]:
    """How templates were given, and how often."""
    names = ("created", "renewed", "found", "failed")
    counts = {
        name: await replica.metric("casaba_webhook_templates_total", outcome=name) for name in names
    }
    return {name: count for name, count in counts.items() if count}


@asynccontextmanager
async def remembering(site: Site) -> AsyncIterator[Replica]:
    """A replica that knows of the pod's template, used long ago, and hears of no change."""
    async with site.replica() as first:
        await first.post(review_of(classic_pod()))
    await age(site, LONG_AGO)
    async with deaf(site) as replica:
        yield replica


@asynccontextmanager
async def deaf(site: Site) -> AsyncIterator[Replica]:
    """A replica that hears of no change of a template after its start."""
    site.server.faults.add(LostEvents(count=1000), WATCHED, times=None)
    async with site.replica() as replica:
        yield replica
