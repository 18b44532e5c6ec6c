"""The walk of a pod: what it asks for, which requests that makes, what is patched."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casaba.policy.convert.amounts import Amount, amounts, asks_for
from casaba.policy.convert.card_choice import card_choice
from casaba.policy.convert.card_requests import CardRequests, card_requests, whole_cards
from casaba.policy.convert.claim_spec import ClaimWriter, template_name
from casaba.policy.convert.demands import Demand, demand
from casaba.policy.convert.facts import ClusterFacts
from casaba.policy.convert.outlook import other_accounts, outlook, shared_cards
from casaba.policy.convert.patches import (
    Operation,
    Record,
    claim_patch,
    metadata_patches,
    resources_patch,
)
from casaba.policy.convert.pods import (
    Container,
    Object,
    described,
    every_container,
    labels,
    objects,
    spec,
)
from casaba.policy.convert.refusals import PodRefused, shown, warning
from casaba.policy.convert.request_names import free_name, is_label
from casaba.policy.convert.scheduling_wishes import scheduling_wishes
from casaba.settings.conversion import ConversionSettings

IGNORE_LABEL, IGNORE = "hami.io/webhook", "ignore"
"""A pod that the webhook leaves alone; kept from HAMi."""

MADE_BY_LABEL, MADE_BY = "casaba.dev/made-by", "webhook"
"""Templates that may be collected."""

CLAIM_ENTRY = "casaba-gpus"
"""Name of the pod's claim, unless the user has one of this name."""


MAX_WARNINGS = 16


@dataclass(frozen=True, kw_only=True)
class TemplateWanted:
    """A ResourceClaimTemplate that must be in the pod's namespace; named by its content."""

    name: str
    spec: dict[str, Any]
    labels: Mapping[str, str] = field(default_factory=lambda: {MADE_BY_LABEL: MADE_BY})


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """What to do with a pod; nothing, if all is empty."""

    patch: tuple[Operation, ...] = ()
    """RFC 6902."""
    templates: tuple[TemplateWanted, ...] = ()
    warnings: tuple[str, ...] = ()
    """For the person: up to MAX_WARNINGS, each up to 250 characters."""


def wants_conversion(pod: Object, settings: ConversionSettings) -> bool:
    """Whether a pod names one of the resources, wherever it may."""
    return _asks(pod, every_container(pod), settings.resources)


def convert_pod(pod: Object, facts: ClusterFacts, settings: ConversionSettings) -> Conversion:
    """The plan for a pod that is created; empty for one that asks for nothing of ours.

    Nothing of the pod is changed. Raises PodRefused.
    """
    everyone, names = every_container(pod), settings.resources
    if not _asks(pod, everyone, names):
        return Conversion()
    _check_places(pod, everyone, settings)
    asked = {one.pointer: (one, found) for one in everyone if (found := amounts(one, names))}
    wanted = {pointer: demand(*found, settings) for pointer, found in asked.items()}
    demands = [one for one in wanted.values() if one is not None]
    _check_pod(pod, demands)
    plan = _claim(pod, demands, facts, settings) if demands else Conversion()
    others = [asked[pointer][0] for pointer, one in wanted.items() if one is None]
    record = {one.name: found for one, found in asked.values()}
    return Conversion(
        patch=(
            *plan.patch,
            *(resources_patch(one, names) for one in others),
            *metadata_patches(pod, _record(record)),
        ),
        templates=plan.templates,
        warnings=_readable(
            *plan.warnings,
            *(_no_card_warning(one, settings) for one in others),
            *other_accounts(_accounts(record, demands, settings), facts, settings),
        ),
    )


def _asks(pod: Object, everyone: Iterable[Container], names: Sequence[str]) -> bool:
    if labels(pod).get(IGNORE_LABEL) == IGNORE:
        return False
    return asks_for(spec(pod).get("resources"), names) or any(
        asks_for(container.resources, names) for container in everyone
    )


def _check_places(pod: Object, everyone: Iterable[Container], settings: ConversionSettings) -> None:
    """Resources where no container could use them."""
    if asks_for(spec(pod).get("resources"), settings.resources):
        raise PodRefused(
            f"spec.resources: {settings.count_resource} and its like can't be shared by the "
            "containers of a pod; move them to the containers that use the card"
        )
    for container in everyone:
        if container.field == "ephemeralContainers" and asks_for(
            container.resources, settings.resources
        ):
            raise PodRefused(
                f"ephemeral {described(container)}: it can't have resources; leave out "
                f"{settings.count_resource} and its like, or debug with a copy of the pod"
            )


def _check_pod(pod: Object, demands: Sequence[Demand]) -> None:
    """Only the scheduler allocates claims."""
    node = spec(pod).get("nodeName")
    if node and demands:
        raise PodRefused(
            f"spec.nodeName: {shown(node)} passes the scheduler by, which has to choose the cards; "
            "leave it out and use nodeSelector kubernetes.io/hostname"
        )
    for one in demands:
        if not is_label(one.container.name):
            raise PodRefused(
                f"{one.container.pointer.removeprefix('/')}: name {shown(one.container.name)} is "
                "no DNS label; use lower-case letters, digits and hyphens"
            )


def _claim(
    pod: Object, demands: Sequence[Demand], facts: ClusterFacts, settings: ConversionSettings
) -> Conversion:
    """The claim, who uses it, and what there is to know of it."""
    choice = card_choice(pod)
    cards = choice.visible(facts)
    wishes = scheduling_wishes(pod, demands, settings)
    requests = card_requests(
        [whole_cards(one) for one in demands] if wishes.whole_cards else demands,
        cards.sizes,
        may_join=not wishes.distinct_cards,
    )
    writer = ClaimWriter(choice, cards, settings)
    template_spec = writer.spec(requests, wishes)
    template = TemplateWanted(name=template_name(template_spec), spec=template_spec)
    needs = [request.need for request in requests.requests]
    return Conversion(
        patch=_patch(pod, requests, template.name, settings),
        templates=(template,),
        warnings=(
            *(told for one in demands for told in one.warnings),
            *(() if wishes.whole_cards else shared_cards(demands, settings)),
            *wishes.warnings,
            *requests.warnings,
            *writer.warnings(requests.requests),
            *outlook(demands, needs, choice, cards, facts, settings),
        ),
    )


def _patch(
    pod: Object, requests: CardRequests, template: str, settings: ConversionSettings
) -> tuple[Operation, ...]:
    taken = {str(own.get("name")) for own in objects(spec(pod).get("resourceClaims"))}
    entry = free_name(CLAIM_ENTRY, taken)
    return (
        *(
            resources_patch(
                one.container,
                settings.resources,
                [{"name": entry, "request": name} for name in names],
            )
            for one, names in requests.uses
        ),
        claim_patch(pod, entry, template),
    )


def _record(asked: Mapping[str, Mapping[str, Amount]]) -> Record:
    return {
        name: {resource: amount.text for resource, amount in found.items()}
        for name, found in asked.items()
    }


def _accounts(
    asked: Mapping[str, Mapping[str, Amount]],
    demands: Sequence[Demand],
    settings: ConversionSettings,
) -> tuple[str, ...]:
    """The resources that some container names; HAMi adds the number of cards where it is not."""
    named = set[str]().union(*asked.values())
    if demands:
        named.add(settings.count_resource)
    return tuple(name for name in settings.resources if name in named)


def _readable(*warnings: str) -> tuple[str, ...]:
    """Each once, and no more than the API server passes on (4096 characters)."""
    once = tuple(dict.fromkeys(warnings))
    if len(once) <= MAX_WARNINGS:
        return once
    return (*once[: MAX_WARNINGS - 1], f"and {len(once) - MAX_WARNINGS + 1} more warnings")


def _no_card_warning(container: Container, settings: ConversionSettings) -> str:
    return warning(
        f"{described(container)}: {settings.priority_resource} asks for no card and is taken away; "
        f"add {settings.count_resource} if it needs one"
    )
