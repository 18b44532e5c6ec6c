"""Templates and pods as the collection sees them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from casaba.wire.kubernetes import ObjectMeta, Pod

MADE_BY = "casaba.dev/made-by"
"""Label of the templates that the webhook makes."""

WEBHOOK = "webhook"
"""The label's value."""

LAST_USED = "casaba.dev/last-used"
"""Annotation: when a pod was last given the template (RFC 3339, UTC, whole seconds)."""

ENDED_PHASES = frozenset({"Succeeded", "Failed"})
"""Pods in these never run again."""


_CONTENT_NAME = re.compile(r"casaba-[0-9a-f]{16}")


class TemplateName(NamedTuple):
    """Names a template."""

    namespace: str
    name: str

    @property
    def is_of_content(self) -> bool:
        """Whether the webhook gives such names; another one with its label is a person's copy."""
        return bool(_CONTENT_NAME.fullmatch(self.name))


@dataclass(frozen=True, kw_only=True)
class MadeTemplate:
    """One template that the webhook made, in one version."""

    name: TemplateName
    uid: str
    resource_version: str
    used_at: datetime | None
    """The stamp, else the creation; None if neither can be read."""
    known_for_s: float
    """How long we have known this version, by a clock that nobody sets."""


def made_template(metadata: ObjectMeta, known_for_s: float) -> MadeTemplate | None:
    """The template of an object's metadata; None if it is not the webhook's or is going already."""
    if metadata.labels.get(MADE_BY) != WEBHOOK or metadata.deletion_timestamp:
        return None
    stamp = _time(metadata.annotations.get(LAST_USED))
    return MadeTemplate(
        name=TemplateName(metadata.namespace, metadata.name),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        used_at=stamp or _time(metadata.creation_timestamp),
        known_for_s=known_for_s,
    )


def names_of_pod(pod: Pod) -> Iterator[TemplateName]:
    """The templates that a pod needs; a pod that has ended needs none."""
    if pod.status.phase in ENDED_PHASES:
        return
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_template_name:
            yield TemplateName(pod.metadata.namespace, claim.resource_claim_template_name)


def _time(text: str | None) -> datetime | None:
    """None for what is no time with a zone; anybody can write an annotation."""
    try:
        found = datetime.fromisoformat(text or "")
        return found.astimezone(UTC) if found.tzinfo else None
    except (ValueError, OverflowError):
        return None
