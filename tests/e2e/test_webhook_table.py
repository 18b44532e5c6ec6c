"""The table of pods at the real API server: what is stored, what is refused, what is told.

Cards, quotas and classes are as each case has them, so the bed's own agents rest meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from casaba.model.ids import GpuUuid, NodeName
from casaba.policy.convert import (
    Card,
    ClusterFacts,
    Conversion,
    PodRefused,
    TemplateWanted,
    convert_pod,
)
from casaba.policy.slices import slice_spec
from casaba.settings.conversion import ConversionSettings
from casaba.simulation.api_server.requests import copied
from tests.cluster.bed import Bed
from tests.e2e.plain_api import STRATEGIC_MERGE, Reply
from tests.e2e.webhook_site import WebhookSite, webhook_site
from tests.e2e.workloads import wait_for_slice
from tests.unit.policy.convert.case import Case
from tests.unit.policy.convert.cases import CASES
from tests.unit.policy.convert.pods import gpu, pod, told, uses
from tests.unit.values import A10

Object = dict[str, Any]

PODS_NAMESPACE = "webhook-table"
MADE_HERE = "casaba.dev/webhook-table"
SLICES, CLASSES = (
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
)
QUOTAS = f"/api/v1/namespaces/{PODS_NAMESPACE}/resourcequotas"
UNREADABLE = 400

ANSWERED_OTHERWISE = {
    "half a card as a count": "nvidia.com/gpu: 500m is a fraction",
    "a fraction of a MiB": "nvidia.com/gpumem: 500m is a fraction",
    "percentage 0.5": "nvidia.com/gpumem-percentage: 500m is a fraction",
    "an ephemeral container": "cannot be set on create",
}
"""Amounts come to the webhook in the API server's form, and some pods do not come at all."""

READ_OTHERWISE = ("a number without end",)
"""10^300 is 1 to the API server, with a webhook and without."""

NAMES_OF_QUOTAS = frozenset({"requests.cpu"})
"""Quotas of the table that would refuse its pods for another reason; not made here."""


def by_world(case: Case) -> tuple[str, str]:
    """Cases of one world stand together: a new one takes a second."""
    return (repr(case.settings), repr(sorted(map(repr, _facts_there(case.facts)))))


def _facts_there(facts: ClusterFacts) -> Iterable[Any]:
    return (*facts.cards, *facts.quota_resources, *facts.extended_resources)


CASES_IN_ORDER = sorted((it for it in CASES if it.name not in READ_OTHERWISE), key=by_world)


@pytest.fixture(scope="module")
def site(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    """No cards but the cases' own."""
    nodes = [node for node in bed.nodes if node.pid("agent") is not None]
    with webhook_site(bed, tmp_path_factory.mktemp("webhook"), PODS_NAMESPACE) as site:
        try:
            for node in nodes:
                node.stop("agent")
            yield site
        finally:
            World(site).forget()
            for node in nodes:
                node.start("agent")
                wait_for_slice(bed, node.name)


class World:
    """The cluster as a case has it."""

    def __init__(self, site: WebhookSite) -> None:
        self._site = site
        self._is: tuple[ConversionSettings, ClusterFacts] | None = None

    def become(self, settings: ConversionSettings, facts: ClusterFacts) -> None:
        """Let it be so, and the webhook know."""
        if self._is == (settings, facts):
            return
        self._is = None
        self.forget()
        for node, cards in groupby(sorted(facts.cards, key=lambda it: it.node), lambda it: it.node):
            self._make(SLICES, _slice(node, list(cards)))
        for number, resource in enumerate(sorted(facts.extended_resources)):
            self._make(CLASSES, _named(f"sells-{number}", {"extendedResourceName": resource}))
        if hard := dict.fromkeys(facts.quota_resources - NAMES_OF_QUOTAS, "1000"):
            self._make(QUOTAS, _named("quota", {"hard": hard}))
        self._site.run_webhook(settings)
        question = _question(settings)
        self._site.wait_until_asked(question, lambda it: _is_answer(it, question, settings, facts))
        self._is = (settings, facts)

    def forget(self) -> None:
        """Take away all that cases brought, and cards of others."""
        for path in (SLICES, CLASSES, QUOTAS):
            only = "" if path == SLICES else f"?labelSelector={MADE_HERE}"
            reply = self._site.api.call("DELETE", path + only)
            assert reply.status == 200, reply

    def _make(self, path: str, content: Object) -> None:
        reply = self._site.api.call("POST", path, content)
        assert reply.status == 201, reply


@pytest.fixture(scope="module")
def world(site: WebhookSite) -> World:
    return World(site)


def _named(name: str, spec: Mapping[str, Any]) -> Object:
    return {"metadata": {"name": f"table-{name}", "labels": {MADE_HERE: ""}}, "spec": dict(spec)}


def _slice(node: str, cards: list[Card]) -> Object:
    """Of a node that is not in the bed: the kubelet takes away slices of its own without agent."""
    gpus = [
        replace(
            A10,
            minor=minor,
            uuid=GpuUuid(card.uuid),
            product_name=card.product_name,
            memory_bytes=card.memory_bytes,
        )
        for minor, card in enumerate(cards)
    ]
    return _named(node, slice_spec(NodeName(f"table-{node}"), gpus, 1))


def _question(settings: ConversionSettings) -> Object:
    """A pod to whose answer cards, quotas and settings contribute."""
    asked = {settings.count_resource: 1, settings.percentage_resource: 50}
    half: Object = {"image": "image:1", "resources": {"limits": asked}}
    return pod(half=half, small=_renamed(gpu(1, mem=1, cores=1), settings))


def _renamed(container: Object, settings: ConversionSettings) -> Object:
    names = dict(zip(ConversionSettings().resources, settings.resources, strict=True))
    limits = container["resources"]["limits"]
    return {**container, "resources": {"limits": {names[key]: it for key, it in limits.items()}}}


def _is_answer(
    reply: Reply, question: Object, settings: ConversionSettings, facts: ClusterFacts
) -> bool:
    there = replace(facts, quota_resources=facts.quota_resources - NAMES_OF_QUOTAS)
    try:
        conversion = convert_pod(question, there, settings)
    except PodRefused as refusal:
        return reply.status == refusal.code and str(refusal) in reply.message
    (wanted,) = conversion.templates
    return (
        reply.status == 201
        and [wanted.name] == _templates_of(reply.body)
        and reply.warnings == conversion.warnings
    )


def _templates_of(stored: Object) -> list[str]:
    entries = stored["spec"].get("resourceClaims", ())
    names = (one.get("resourceClaimTemplateName", "") for one in entries)
    return [name for name in names if name.startswith("casaba-")]


@pytest.mark.parametrize("case", CASES_IN_ORDER, ids=lambda case: case.name)
def test_case(site: WebhookSite, world: World, case: Case) -> None:
    world.become(case.settings, case.facts)
    sent = _to_send(case)
    before = site.template_names()
    tried = site.create_pod(sent, dry_run=True)
    assert site.template_names() == before, "a dry run made a template"
    made = site.create_pod(sent)
    if case.refused:
        for reply in (tried, made):
            _check_refusal(reply, case)
        assert site.template_names() == before
        return
    assert made.status == tried.status == 201, made
    assert _without_names(made.body["spec"]) == _without_names(tried.body["spec"])
    assert made.warnings == tried.warnings
    _check_stored(site, made, sent, case)
    if not case.untouched:
        _check_applied_again(site, made.body, sent)


def _to_send(case: Case) -> Object:
    """Held back from the scheduler: what runs is another test's."""
    sent: Object = copied(case.pod)
    if not case.refused:
        sent["spec"]["schedulingGates"] = [{"name": "casaba.dev/table"}]
    if "name" in sent["metadata"]:
        sent["metadata"]["name"] = f"pod-{CASES.index(case)}"
    return sent


def _check_refusal(reply: Reply, case: Case) -> None:
    assert reply.status == case.code, reply
    if case.code != UNREADABLE:
        assert ANSWERED_OTHERWISE.get(case.name, case.refused) in reply.message


def _check_stored(site: WebhookSite, made: Reply, sent: Object, case: Case) -> None:
    stored = made.body
    requests = {line.partition(":")[0] for line in case.claim}
    everyone = [*stored["spec"]["containers"], *stored["spec"].get("initContainers", ())]
    own = {one["name"]: one["name"] for one in everyone if one["name"] in requests}
    assert uses(stored) == {**own, **case.uses}
    assert _told(site, stored) == case.claim
    _check_warnings(made.warnings, case)
    assert _holds(stored, _rest(sent, case))
    if case.untouched:
        return
    assert stored["metadata"]["labels"]["hami.io/dra"] == "true"
    assert json.loads(stored["metadata"]["annotations"]["casaba.dev/converted-resources"])
    assert not [name for one in everyone for name in _asked(one) if name in case.settings.resources]


def _told(site: WebhookSite, stored: Object) -> tuple[str, ...]:
    """The stored template in the table's words."""
    templates = []
    for name in _templates_of(stored):
        found = site.api.call("GET", site.templates(name))
        assert found.status == 200, found
        assert found.body["metadata"]["labels"] == {"casaba.dev/made-by": "webhook"}
        templates.append(TemplateWanted(name=name, spec=found.body["spec"]))
    return told(Conversion(templates=tuple(templates)))


def _check_warnings(warnings: tuple[str, ...], case: Case) -> None:
    """In their order; the API server itself may have some before and after."""
    rest = iter(warnings)
    for part in case.warnings:
        assert any(part in one for one in rest), (part, warnings)


def _asked(container: Object) -> Iterator[str]:
    for kind in ("limits", "requests"):
        yield from container["resources"].get(kind, {})


def _check_applied_again(site: WebhookSite, stored: Object, sent: Object) -> None:
    """What kubectl sends: the resources, where the manifest and the pod differ."""
    path, fields = site.pods(stored["metadata"]["name"]), ("containers", "initContainers")
    spec = {field: [_differing(one) for one in sent["spec"].get(field, ())] for field in fields}
    again = site.api.call("PATCH", path, {"spec": spec}, kind=STRATEGIC_MERGE)
    assert again.status == 200, again
    assert again.body["spec"] == stored["spec"]
    assert again.body["metadata"]["annotations"] == stored["metadata"]["annotations"]


def _differing(container: Object) -> Object:
    return {key: it for key, it in container.items() if key in ("name", "resources")}


def _without_names(spec: Object) -> Object:
    """The API server mounts its token under a name of chance."""
    return {key: it for key, it in _plain(spec).items() if key != "volumes"}


def _plain(spec: Object) -> Object:
    changed: Object = copied(spec)
    for one in (*changed["containers"], *changed.get("initContainers", ())):
        one.pop("volumeMounts", None)
    return changed


def _rest(sent: Object, case: Case) -> Object:
    """What was sent and has to be stored: all but amounts, which change their form."""
    rest: Object = copied(sent)
    everyone = [*rest["spec"]["containers"], *rest["spec"].get("initContainers", ())]
    for one in everyone:
        if not case.untouched:
            one.pop("resources", None)
    rest["spec"].pop("resources", None)
    return rest


def _holds(whole: Any, part: Any) -> bool:
    """Whether everything of the part is there; lists may have more at their end, and the API
    server writes amounts as texts and leaves out empty ones."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            _holds(whole.get(key, ""), it) for key, it in part.items()
        )
    if isinstance(part, list):
        pairs = zip(whole, part, strict=False)
        return len(whole) >= len(part) and all(_holds(one, it) for one, it in pairs)
    return whole in (part, str(part))


def test_the_exceptions_are_cases_of_the_table() -> None:
    assert {*ANSWERED_OTHERWISE, *READ_OTHERWISE} <= {case.name for case in CASES}
