"""Everything that is said of a claim, in one verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from casaba.errors import InvalidInput
from casaba.policy.admit.amounts import judge_amounts, too_large
from casaba.policy.admit.asked import Asked, AskedDevices, Entry, asked_devices, object_of
from casaba.policy.admit.outlook import pending_reason
from casaba.policy.admit.relations import judge_constraints
from casaba.policy.admit.verdict import Verdict, shown
from casaba.policy.allocation import KUBERNETES_1_36, Behaviour
from casaba.policy.parameters import API_VERSION, KIND, NVIDIA_GROUP, parse_parameters
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Device, DeviceClass, ResourceSlice

MAX_COUNT = 32
"""More devices can't be written into a claim's status (resource/v1)."""


def judge_claim(
    spec: Mapping[str, Any],
    slices: Iterable[ResourceSlice],
    classes: Mapping[str, DeviceClass],
    *,
    at: str = "spec",
    behaviour: Behaviour = KUBERNETES_1_36,
) -> Verdict:
    """What is wrong with the spec of a claim, or of a template (`at="spec.spec"`).

    The spec is the JSON of any version of resource.k8s.io; never raises. A claim that neither
    names our class nor carries config for our driver gets an empty verdict.
    """
    devices = asked_devices(object_of(spec), at)
    config = Verdict(refusals=tuple(_of_config(devices)), warnings=tuple(_of_others(devices)))
    if not any(devices.ours()):
        return Verdict(refusals=config.refusals)
    offered = [slice_ for slice_ in slices if slice_.spec.driver == DRIVER_NAME]
    cards = [device for slice_ in offered for device in slice_.spec.devices]
    verdict = config + judge_constraints(devices, cards)
    for asked in devices.ours():
        verdict += _of_request(asked) + judge_amounts(asked)
    verdict += Verdict(warnings=tuple(_of_class(classes)))
    if verdict.refusals:
        return verdict
    large = tuple(text for asked in devices.ours() if (text := too_large(asked, cards)))
    if large:
        return verdict + Verdict(warnings=large)
    return verdict + _outlook(devices, offered, cards, classes, behaviour)


def _of_request(asked: Asked) -> Verdict:
    refusals, warnings = [], []
    if asked.form.get("adminAccess") is True:
        refusals.append(
            f"{asked.at}.adminAccess: this driver does not give it, since a container with it "
            "would see the whole card; leave it out"
        )
    if asked.count > MAX_COUNT:
        refusals.append(
            f"{asked.at}.count: {shown(asked.count)} devices are more than a claim can hold; ask "
            f"for {MAX_COUNT} or fewer"
        )
    if asked.takes_all:
        warnings.append(
            f"{asked.at}.allocationMode: All takes this much of every matching card of one node, "
            "so the claim waits until each of them has room; ExactCount with count asks for fewer"
        )
    return Verdict(refusals=tuple(refusals), warnings=tuple(warnings))


def _of_config(devices: AskedDevices) -> Iterator[str]:
    for entry in devices.config:
        opaque = object_of(entry.form.get("opaque"))
        if opaque.get("driver") != DRIVER_NAME:
            continue
        parameters = opaque.get("parameters")
        try:
            if not isinstance(parameters, Mapping):
                raise InvalidInput(f"not an object; write {API_VERSION} {KIND}")
            parse_parameters(parameters)
        except InvalidInput as error:
            separator = "." if isinstance(parameters, Mapping) else ": "
            yield f"{entry.at}.opaque.parameters{separator}{error}"


def _of_others(devices: AskedDevices) -> Iterator[str]:
    """Config that was written for another driver, but is for requests of ours alone."""
    for entry in devices.config:
        driver = object_of(entry.form.get("opaque")).get("driver")
        if isinstance(driver, str) and driver != DRIVER_NAME and _is_for_ours_only(entry, devices):
            yield (
                f"{entry.at}.opaque.driver: {shown(driver)} serves none of the requests that this "
                f"is for, so nobody will read it; driver {DRIVER_NAME} reads {API_VERSION} {KIND} "
                f"and nothing of {NVIDIA_GROUP}"
            )


def _is_for_ours_only(entry: Entry, devices: AskedDevices) -> bool:
    meant = [asked for forms in devices.requests for asked in forms if entry.is_for(asked)]
    return bool(meant) and all(asked.is_ours for asked in meant)


def _of_class(classes: Mapping[str, DeviceClass]) -> Iterator[str]:
    """The administrator's mistakes come out when a pod starts; better told here."""
    if DRIVER_NAME not in classes:
        return
    for index, entry in enumerate(classes[DRIVER_NAME].spec.config):
        if entry.opaque is None or entry.opaque.driver != DRIVER_NAME:
            continue
        try:
            parse_parameters(entry.opaque.parameters)
        except InvalidInput as error:
            yield (
                f"DeviceClass {DRIVER_NAME}, spec.config[{index}]: {error}: no pod will start "
                "until the cluster's administrator has put it right"
            )


def _outlook(
    devices: AskedDevices,
    slices: Sequence[ResourceSlice],
    cards: Sequence[Device],
    classes: Mapping[str, DeviceClass],
    behaviour: Behaviour,
) -> Verdict:
    if DRIVER_NAME not in classes:
        reason = f"DeviceClass {DRIVER_NAME} does not exist; it comes with the chart"
    elif not cards:
        reason = f"no node offers a card of driver {DRIVER_NAME} now"
    else:
        reason = pending_reason(devices, slices, classes, behaviour)
    return Verdict(warnings=(f"will stay Pending: {reason}",) if reason else ())
