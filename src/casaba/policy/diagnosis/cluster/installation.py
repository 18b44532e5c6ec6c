"""The one release of casaba, its class, and the pods of its parts; pure."""

from collections.abc import Iterable, Iterator

import msgspec

from casaba.errors import CasabaError
from casaba.policy.cel import compiled_selector
from casaba.policy.diagnosis.cluster.canary import canary_slice
from casaba.policy.diagnosis.cluster.control_plane import without_resource_api
from casaba.policy.diagnosis.cluster.observations import ClusterObservations, Objects
from casaba.policy.diagnosis.finding import (
    Check,
    Unseen,
    Verdict,
    both,
    check,
    few,
    ok,
    skipped,
    wrong,
)
from casaba.policy.diagnosis.objects import Object, is_true, items, label, name, part, text
from casaba.settings.host_paths import DRIVER_NAME
from casaba.wire.kubernetes import Device

COMPONENT = "app.kubernetes.io/component"

INSTANCE = "app.kubernetes.io/instance"

_ALIVE_PHASES = ("Pending", "Running")


def component(pods: Iterable[Object], which: str) -> Objects:
    """The living pods of a part of casaba."""
    return tuple(
        pod
        for pod in pods
        if label(pod, COMPONENT) == which
        and (text(pod, "status", "phase") or "Pending") in _ALIVE_PHASES
        and not text(pod, "metadata", "deletionTimestamp")
    )


def is_ready(pod: Object) -> bool:
    """Whether the kubelet takes the pod for ready."""
    return is_true(items(pod, "status", "conditions"), "Ready")


def judge_releases(seen: tuple[Objects, Objects, bool]) -> Verdict:
    """Driver name, class and sockets exist once in a cluster."""
    classes, pods, is_absent = seen
    if is_absent:
        return wrong(
            "casaba is not installed",
            "helm install it; casaba doctor --preinstall tells whether the cluster is ready for it",
        )
    releases = {(text(pod, "metadata", "namespace"), label(pod, INSTANCE)) for pod in pods} | set(
        _release_of_class(classes)
    )
    told = sorted(f"{release} in {namespace}" for namespace, release in releases if release)
    if len(told) > 1:
        return wrong(
            f"more than one release of casaba: {few(told)}",
            "uninstall all but one with helm uninstall RELEASE -n NAMESPACE",
        )
    return ok(told[0]) if told else skipped("not installed with Helm")


def not_installed(seen: ClusterObservations) -> str | None:
    """Why none of casaba's parts can be looked at."""
    return "casaba is not installed" if _is_absent(seen) else None


def _is_absent(seen: ClusterObservations) -> bool:
    """Only where all was seen in which something of it would be."""
    nothing = without_resource_api(seen) is not None
    classes, slices = ((), ()) if nothing else (seen.classes, seen.slices)
    if isinstance(seen.webhooks, Unseen) or isinstance(classes, Unseen):
        return False
    ours = {seen.names.mutating, seen.names.validating, DRIVER_NAME}
    named = (*seen.webhooks.mutating, *seen.webhooks.validating, *classes)
    return seen.pods == slices == () and not any(name(one) in ours for one in named)


def _release_of_class(classes: Objects) -> Iterator[tuple[str, str]]:
    for one in classes:
        notes = part(one, "metadata", "annotations")
        if name(one) == DRIVER_NAME and text(notes, "meta.helm.sh/release-name"):
            yield (
                text(notes, "meta.helm.sh/release-namespace"),
                text(notes, "meta.helm.sh/release-name"),
            )


def judge_class(classes: Objects) -> Verdict:
    """Our DeviceClass chooses our devices and no others."""
    found = next((one for one in classes if name(one) == DRIVER_NAME), None)
    if found is None:
        return wrong(
            f"there is no DeviceClass {DRIVER_NAME}, so no claim can be allocated",
            "install the chart, or apply examples/cluster/deviceclass.yaml",
        )
    expressions = [text(one, "cel", "expression") for one in items(found, "spec", "selectors")]
    try:
        ours, others = _chosen(expressions, DRIVER_NAME), _chosen(expressions, "other.example")
    except (CasabaError, msgspec.ValidationError) as error:
        return _wrong_class(f"its selector can't be evaluated: {error}")
    if not ours:
        return _wrong_class("its selectors choose none of our cards")
    if others:
        return _wrong_class("its selectors choose other drivers' devices too")
    return ok(f"DeviceClass {DRIVER_NAME}")


def _chosen(expressions: Iterable[str], driver: str) -> bool:
    device = msgspec.convert(canary_slice()["spec"]["devices"][0], Device)
    return all(compiled_selector(one).matches(driver, device) for one in expressions)


def _wrong_class(why: str) -> Verdict:
    return wrong(
        f"DeviceClass {DRIVER_NAME}: {why}",
        f'its selector must hold device.driver == "{DRIVER_NAME}"; helm upgrade puts it right',
    )


def _releases(seen: ClusterObservations) -> tuple[Objects, Objects, bool] | Unseen:
    found = both(seen.classes, seen.pods)
    return found if isinstance(found, Unseen) else (*found, _is_absent(seen))


RELEASES: Check[ClusterObservations] = check(
    "parts.releases",
    "release",
    _releases,
    judge_releases,
    advice="grant list on pods and deviceclasses to the one who runs this",
)

DEVICE_CLASS: Check[ClusterObservations] = check(
    "parts.class",
    "DeviceClass",
    lambda seen: seen.classes,
    judge_class,
    advice="grant list on deviceclasses to the one who runs this",
)
