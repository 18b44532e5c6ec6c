"""What gives cards to containers on a node: CDI, containerd and the kubelet; pure."""

import re

from casaba.policy.diagnosis.finding import (
    Check,
    Verdict,
    check,
    count,
    few,
    ok,
    skipped,
    warning,
    wrong,
)
from casaba.policy.diagnosis.host.observations import (
    AS_ROOT,
    CdiSeen,
    HostObservations,
    KubeletSeen,
    RuntimeSeen,
)
from casaba.policy.diagnosis.remedies import CONTAINERD_1, CONTAINERD_2, enable_cdi
from casaba.wire import cdi


def judge_cdi(seen: CdiSeen) -> Verdict:
    """Our specs are there, and none is damaged: a damaged one stops every container with CDI."""
    if seen.damaged:
        return wrong(
            f"damaged CDI specs: {few(seen.damaged)}",
            "remove them, or have them made anew by the one who wrote them; the agent makes its "
            "own again when it is started",
        )
    if not seen.exists:
        return wrong(
            f"there is no {seen.folder}",
            "start the agent, which makes it; is /var/run/cdi mounted into its pod?",
        )
    missing = [name for name in (cdi.CARD_SPEC_FILE, cdi.GUARD_SPEC_FILE) if name not in seen.specs]
    if missing:
        return wrong(
            f"{seen.folder} has no {few(missing)}",
            "the agent writes it when it has found the cards: is it running, and what does its log "
            "say of the driver?",
        )
    return ok(f"{count(len(seen.specs), 'spec')} of casaba in {seen.folder}")


def judge_runtime(runtime: RuntimeSeen) -> Verdict:
    """containerd 2.0 has CDI on by default, 1.7 off, and older ones know none."""
    told = f"containerd {runtime.version}" if runtime.version else "containerd"
    if runtime.cdi_enabled is False:
        return wrong(f"{told}: CDI is off in {runtime.source}", _enable(runtime.version))
    if runtime.cdi_enabled:
        return ok(f"{told}: CDI is on")
    major = _first_two(runtime.version)
    if major is None:
        return skipped("containerd is not seen from here: look on the node itself, not in a pod")
    if major >= (2, 0):
        return ok(f"{told}: CDI is on by default")
    if major >= (1, 7):
        return wrong(f"{told}: CDI is off by default", _enable(runtime.version))
    return wrong(f"{told} knows no CDI", "use containerd 2.0 or newer")


def _enable(version: str | None) -> str:
    two = _first_two(version)
    return enable_cdi(CONTAINERD_1 if two and two < (2, 0) else CONTAINERD_2)


def _first_two(version: str | None) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)", version or "")
    return (int(found[1]), int(found[2])) if found else None


def judge_kubelet(kubelet: KubeletSeen) -> Verdict:
    """Sockets of both sides."""
    if not kubelet.has_registry:
        return wrong(
            f"{kubelet.folder} has no plugins_registry",
            "is the kubelet running, and is this its --root-dir? Else give --kubelet-dir",
        )
    if not kubelet.plugin_sockets or not kubelet.registration_sockets:
        return wrong(
            f"the driver has no sockets below {kubelet.folder}",
            "is the agent running? Its DaemonSet needs plugins and plugins_registry mounted",
        )
    if kubelet.pods_told:
        return warning(
            kubelet.pods_told,
            "metrics lack the names of pods until it answers; look at the kubelet's log",
        )
    return ok(f"{few(kubelet.plugin_sockets)}; the kubelet tells its pods")


CDI_SPECS: Check[HostObservations] = check(
    "node.cdi", "CDI specs", lambda seen: seen.cdi, judge_cdi, advice=AS_ROOT
)
RUNTIME: Check[HostObservations] = check(
    "node.runtime", "CDI in containerd", lambda seen: seen.runtime, judge_runtime, advice=AS_ROOT
)
KUBELET: Check[HostObservations] = check(
    "node.kubelet", "kubelet", lambda seen: seen.kubelet, judge_kubelet, advice=AS_ROOT
)
