"""Updates of converted pods, above all by people who apply their manifest again."""

from collections.abc import Mapping

from casaba.errors import InvalidInput
from casaba.model.quantity import quantity
from casaba.policy.convert.amounts import amounts, asks_for
from casaba.policy.convert.claim_spec import is_template_name
from casaba.policy.convert.conversion import Conversion
from casaba.policy.convert.patches import DRA_LABEL, Record, recorded, resources_patch
from casaba.policy.convert.pods import (
    Container,
    Object,
    containers,
    described,
    labels,
    objects,
    spec,
)
from casaba.policy.convert.refusals import PodRefused
from casaba.settings.conversion import ConversionSettings


def strip_update(old: Object, new: Object, settings: ConversionSettings) -> Conversion:
    """Take away again what conversion took away; empty if the pod was not converted.

    Only of containers that do not have it: those are the ones that were converted. Where the list
    of their claims came back as the user wrote it, ours are added again. Raises PodRefused where
    the amounts differ from those that the pod was made with, since a pod's resources can't change
    and taking them away would hide that.
    """
    record = recorded(old)
    if DRA_LABEL not in labels(old) and not record:
        return Conversion()
    before = {(one.field, one.name): one for one in containers(old)}
    stripped = [
        (one, known)
        for one in containers(new)
        if asks_for(one.resources, settings.resources)
        and (known := before.get((one.field, one.name))) is not None
        and not asks_for(known.resources, settings.resources)
    ]
    for one, _ in stripped:
        _check_same(one, record, settings)
    ours = _claim_entries(old)
    return Conversion(
        patch=tuple(
            resources_patch(one, settings.resources, _lost_claims(one, known, ours))
            for one, known in stripped
        )
    )


def _claim_entries(pod: Object) -> frozenset[str]:
    """Names of the pod's claims that conversion added."""
    return frozenset(
        entry["name"]
        for entry in objects(spec(pod).get("resourceClaims"))
        if is_template_name(entry.get("resourceClaimTemplateName"))
        and isinstance(entry.get("name"), str)
    )


def _lost_claims(
    container: Container, known: Container, ours: frozenset[str]
) -> tuple[Mapping[str, str], ...]:
    """Those of ours that the known container has. A strategic merge replaces the whole list."""
    kept = objects(container.resources.get("claims"))
    had = objects(known.resources.get("claims"))
    return tuple(claim for claim in had if claim.get("name") in ours and claim not in kept)


def _check_same(container: Container, record: Record, settings: ConversionSettings) -> None:
    """What is missing now may only not have been named; without a record nothing is known."""
    made_with = record.get(container.name, {})
    if not (values := _values(made_with)):
        return
    for name, amount in amounts(container, settings.resources).items():
        if amount.value != values.get(name):
            before = f"with {made_with[name]}" if name in made_with else "without it"
            raise PodRefused(
                f"{described(container)}: {name}: {amount.text} is asked for, but the pod was "
                f"made {before}, and resources of a pod can't be changed; delete the pod and "
                "create it anew"
            )


def _values(texts: Mapping[str, str]) -> Mapping[str, int]:
    """Amounts are compared, not texts; a record that was spoilt says nothing."""
    try:
        return {name: quantity(text).value() for name, text in texts.items()}
    except InvalidInput:
        return {}
