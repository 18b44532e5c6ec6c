"""The table: what becomes of each pod, and what holds for all of them."""

import json

import pytest

from casaba.policy.admit import judge_claim
from casaba.policy.convert import (
    Conversion,
    PodRefused,
    convert_pod,
    strip_update,
    wants_conversion,
)
from casaba.settings.host_paths import DRIVER_NAME
from casaba.simulation.api_server.requests import Object, copied
from casaba.simulation.api_server.strategy import validated
from tests.unit.policy.convert.case import Case
from tests.unit.policy.convert.cases import CASES
from tests.unit.policy.convert.clusters import CLASS, Cluster, gpus
from tests.unit.policy.convert.pods import A10_MIB, patched, told, uses
from tests.unit.simulation.api_objects import PODS, created, resource

TEMPLATES = resource("resourceclaimtemplates")
ACCEPTED = [case for case in CASES if not case.refused]
CHANGED = [case for case in ACCEPTED if not case.untouched]
CONVERTED = [case for case in ACCEPTED if case.claim]
WARNING_CHARACTERS = 256


def by_name(case: Case) -> str:
    return case.name


def converted(case: Case) -> Conversion:
    return convert_pod(case.pod, case.facts, case.settings)


def template_object(conversion: Conversion) -> Object:
    (template,) = conversion.templates
    return {
        "metadata": {"name": template.name, "labels": dict(template.labels)},
        "spec": template.spec,
    }


def test_names_of_cases_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 120


@pytest.mark.parametrize("case", [case for case in CASES if case.refused], ids=by_name)
def test_refused(case: Case) -> None:
    with pytest.raises(PodRefused) as refusal:
        converted(case)
    assert case.refused in str(refusal.value)
    assert refusal.value.code == case.code
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("case", ACCEPTED, ids=by_name)
def test_accepted(case: Case) -> None:
    before = copied(case.pod)
    conversion = converted(case)
    changed = patched(case.pod, conversion)
    assert case.pod == before
    assert told(conversion) == case.claim
    requests = {line.partition(":")[0] for line in case.claim}
    own = {name: name for name in _containers(changed) if name in requests}
    assert uses(changed) == {**own, **case.uses}
    assert len(conversion.warnings) == len(case.warnings), conversion.warnings
    for part, warning in zip(case.warnings, conversion.warnings, strict=True):
        assert part in warning
        assert len(warning) <= WARNING_CHARACTERS
    assert bool(conversion.patch) != case.untouched


@pytest.mark.parametrize("case", ACCEPTED, ids=by_name)
def test_what_comes_out_is_valid_and_final(case: Case) -> None:
    """For the API server, for our own validation, and for the webhook that sees it again."""
    conversion = converted(case)
    changed = patched(case.pod, conversion)
    assert convert_pod(changed, case.facts, case.settings) == Conversion()
    assert case.untouched or not wants_conversion(changed, case.settings)
    stored = created(PODS, changed)
    stored["metadata"].setdefault("name", "made-by-generate-name")
    assert validated(PODS, stored, None, "") == ()
    for wanted in conversion.templates:
        template = created(TEMPLATES, template_object(conversion))
        assert validated(TEMPLATES, template, None, "") == ()
        for slices in ((), Cluster(edge=gpus(A10_MIB)).slices):
            verdict = judge_claim(wanted.spec["spec"], slices, {DRIVER_NAME: CLASS})
            assert verdict.refusals == ()


@pytest.mark.parametrize("case", CHANGED, ids=by_name)
def test_the_rest_of_the_pod_stays(case: Case) -> None:
    changed = patched(case.pod, converted(case))
    metadata = changed["metadata"]
    assert metadata["labels"]["hami.io/dra"] == "true"
    record = json.loads(metadata["annotations"]["casaba.dev/converted-resources"])
    assert set(uses(changed)) <= set(record)
    assert all(set(taken) <= set(case.settings.resources) for taken in record.values())
    assert _without_conversion(changed, case) == _without_conversion(case.pod, case)


@pytest.mark.parametrize("case", CHANGED, ids=by_name)
def test_the_manifest_can_be_applied_again(case: Case) -> None:
    """A three-way merge brings the resources back and leaves what the webhook added, but for a
    container's list of claims, which it replaces where the manifest has one."""
    stored = patched(case.pod, converted(case))
    again = copied(stored)
    for field in ("containers", "initContainers"):
        for new, original in zip(
            again["spec"].get(field, ()), case.pod["spec"].get(field, ()), strict=True
        ):
            new["resources"] = {**_claims(new), **original.get("resources", {})}
    stripped = patched(again, strip_update(stored, again, case.settings))
    assert created(PODS, stripped) == created(PODS, stored)


def test_pods_that_ask_for_the_same_share_a_template() -> None:
    for case in CONVERTED:
        renamed = {**case.pod, "metadata": {**case.pod["metadata"], "name": "other"}}
        templates = convert_pod(renamed, case.facts, case.settings).templates
        assert templates == converted(case).templates


def _containers(pod: Object) -> list[str]:
    spec = pod["spec"]
    return [one.get("name", "") for one in (*spec["containers"], *spec.get("initContainers", ()))]


def _claims(container: Object) -> Object:
    resources = container.get("resources", {})
    return {"claims": resources["claims"]} if "claims" in resources else {}


def _without_conversion(pod: Object, case: Case) -> Object:
    """A pod without what conversion may change."""
    rest: Object = copied(pod)
    for field in ("labels", "annotations"):
        entries = rest["metadata"].get(field) or {}
        entries.pop("hami.io/dra", None)
        entries.pop("casaba.dev/converted-resources", None)
        rest["metadata"][field] = entries
    rest["spec"]["resourceClaims"] = [
        claim
        for claim in rest["spec"].get("resourceClaims", ())
        if not claim.get("resourceClaimTemplateName", "").startswith("casaba-")
    ]
    for container in (*rest["spec"]["containers"], *rest["spec"].get("initContainers", ())):
        resources = container.setdefault("resources", {})
        for kind in ("limits", "requests"):
            amounts = resources.get(kind, {})
            resources[kind] = {
                name: amount
                for name, amount in amounts.items()
                if name not in case.settings.resources
            }
        resources["claims"] = [
            claim for claim in resources.get("claims", ()) if "request" not in claim
        ]
    return rest
