"""What a container's environment says of its share: HAMi-core's variables."""

from casaba.model.slice_parameters import CorePolicy
from casaba.policy.convert.pods import Container, described, mapping
from casaba.policy.convert.refusals import PodRefused, shown, warning
from casaba.settings.conversion import ConversionSettings

CORE_POLICY_VARIABLE = "GPU_CORE_UTILIZATION_POLICY"
DISABLE_VARIABLE = "CUDA_DISABLE_CONTROL"


def core_policy(container: Container, settings: ConversionSettings) -> CorePolicy | None:
    """The container's own variable, else the chart's value; nothing where both say the default."""
    value = mapping(container.environment.get(CORE_POLICY_VARIABLE)).get("value")
    if not value or not isinstance(value, str):
        chosen = CorePolicy(settings.core_policy)
        return None if chosen is CorePolicy.DEFAULT else chosen
    try:
        return CorePolicy(value.strip().lower())
    except ValueError:
        known = ", ".join(policy.value for policy in CorePolicy)
        raise PodRefused(
            f"{described(container)}: env {CORE_POLICY_VARIABLE}: {shown(value)} is unknown; "
            f"use one of {known}"
        ) from None


def environment_warnings(container: Container, settings: ConversionSettings) -> tuple[str, ...]:
    """What of the environment can't be followed."""
    variables, found = container.environment, []
    if "valueFrom" in variables.get(CORE_POLICY_VARIABLE, ()):
        found.append(
            f"{described(container)}: {CORE_POLICY_VARIABLE} comes from valueFrom and can't be "
            f"read here; {settings.core_policy} is used: write the value itself"
        )
    disabled = mapping(variables.get(DISABLE_VARIABLE)).get("value")
    if isinstance(disabled, str) and disabled.strip().lower() in ("true", "1"):
        found.append(
            f"{described(container)}: {DISABLE_VARIABLE} has no effect: limits always hold; "
            "leave it out"
        )
    return tuple(warning(text) for text in found)
