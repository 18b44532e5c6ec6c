"""Taints of devices and what requests tolerate (KEP 5055)."""

from casaba.wire.kubernetes import Device, DeviceTaint, DeviceToleration

_PREVENT = ("NoSchedule", "NoExecute")


def untolerated(device: Device, tolerations: tuple[DeviceToleration, ...]) -> DeviceTaint | None:
    """The first taint that keeps a request away; other effects, `None` too, keep nobody away."""
    for taint in device.taints:
        if taint.effect in _PREVENT and not any(_tolerates(t, taint) for t in tolerations):
            return taint
    return None


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
