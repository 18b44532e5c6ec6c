"""Objects that an API server refuses, with what a real one said of them.

The simulated server and a real one must agree on status code, reason and the causes' fields, as
recorded in bad_objects.json from Kubernetes 1.36.
"""

import json
from pathlib import Path
from typing import Any

from tests.conformance.api_server.bad_claims import bad_claims, bad_classes
from tests.conformance.api_server.bad_core_objects import bad_metadata, bad_others, bad_pods
from tests.conformance.api_server.bad_object import BadObject, Object
from tests.conformance.api_server.bad_rules import bad_roles, bad_webhook_configurations
from tests.conformance.api_server.bad_slices import bad_slices

BAD_OBJECTS: tuple[BadObject, ...] = (
    *bad_metadata(),
    *bad_pods(),
    *bad_others(),
    *bad_claims(),
    *bad_classes(),
    *bad_slices(),
    *bad_roles(),
    *bad_webhook_configurations(),
)

Verdict = list[Any]
"""Code, reason, and the causes as sorted pairs of field and reason."""

VERDICTS: dict[str, Verdict] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""What a real server said, by the name of the object."""


def verdict(status: Object) -> Verdict:
    """What a Status says, as far as servers must agree."""
    causes = status.get("details", {}).get("causes", [])
    fields = sorted([cause.get("field", ""), cause["reason"]] for cause in causes)
    return [status.get("code"), status.get("reason"), fields]
