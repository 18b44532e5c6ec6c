"""What the webhook, the agents and the controller leave behind in a cluster."""

from casaba.policy.collection import MADE_BY, WEBHOOK, TemplateName
from casaba.wire.kubernetes import ObjectMeta, Wire


def is_made_template(metadata: ObjectMeta) -> bool:
    """Whether the webhook made it; one that a person copied with the label has another name."""
    name = TemplateName(metadata.namespace, metadata.name)
    return metadata.labels.get(MADE_BY) == WEBHOOK and name.is_of_content


class Bare(Wire, frozen=True):
    """Any object, reduced to its metadata."""

    metadata: ObjectMeta
